package proxy

import "sync"

// maxTold is how many commands are remembered as told of the limit of terminated tunnels. Where the listener does not tell
// the command a client may make up as many names as it likes; beyond the limit nobody is told, so that they cannot fill the
// memory, nor the report.
const maxTold = 1024

// tunnelSlots counts the terminated tunnels of a session (TLS-41). The zero value has none. All methods may be called from
// any goroutine.
type tunnelSlots struct {
	mu    sync.Mutex
	taken int
	told  map[string]struct{} // commands whose refusal was reported since half the slots were free
}

// take takes a slot if fewer than limit are taken. Else first tells whether the refusal is to be reported for a command:
// once, until half the slots are free again (VIO-15).
func (t *tunnelSlots) take(limit int, command string) (ok, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken < limit {
		t.taken++
		t.forgive(limit)
		return true, false
	}
	if _, told := t.told[command]; told || len(t.told) >= maxTold {
		return false, false
	}
	if t.told == nil {
		t.told = map[string]struct{}{}
	}
	t.told[command] = struct{}{}
	return false, true
}

// give gives a slot back. limit is that of now, which an update may have changed.
func (t *tunnelSlots) give(limit int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	t.forgive(limit)
}

// forgive forgets who was told once half the slots are free.
func (t *tunnelSlots) forgive(limit int) {
	if t.told != nil && 2*t.taken <= limit {
		t.told = nil
	}
}
