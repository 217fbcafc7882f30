package decider

import "sync"

// maxHeld is how many bytes of bodies may be held for inspection at once (PRX-55).
const maxHeld = 64 << 20

// budget counts the bodies that are held for inspection over all requests. Nothing waits for it.
type budget struct {
	mu   sync.Mutex
	held int64
}

// reserve takes n bytes if they are to be had.
func (b *budget) reserve(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > maxHeld-b.held {
		return false
	}
	b.held += n
	return true
}

func (b *budget) release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= n
}
