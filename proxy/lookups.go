package proxy

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/srt-sandbox/srt/runtime/violation"
)

const (
	// lookupPatience is how long a name that was looked up waits for a connection to it, which is the better report.
	lookupPatience = 2 * time.Second
	// maxLookups is how many names are told apart for reports. Past that, what was told is forgotten, and may be told again.
	maxLookups = 1024
)

// lookups are the names that programs have asked the resolver for although nothing allows them. That sends nothing
// anywhere, and mostly a connection follows whose refusal is the report. A name that is only looked up is reported by
// itself, once. The lock is that of the Capture.
type lookups struct {
	waiting map[string]struct{} // for a connection
	told    map[string]struct{}
	timer   *time.Timer // nil: nothing waits
	closed  bool
	telling sync.Mutex // held while names are reported, and not within the lock of the Capture
}

// LookedUp is told of each name that the resolver is asked for, in lower case without final dot, unless it is one that the
// policy could allow when it was first asked for. A single label is a host's own name more often than not, and no entry
// can allow one.
func (c *Capture) LookedUp(name string) {
	if !strings.Contains(name, ".") || c.server.possible(name) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.lookups
	if _, told := l.told[name]; told || l.closed {
		return
	}
	if l.waiting == nil {
		l.waiting = map[string]struct{}{}
	}
	if len(l.waiting) < maxLookups {
		l.waiting[name] = struct{}{}
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(lookupPatience, c.tellLookups)
	}
}

// connecting is told that a connection to a name was refused: that is the report.
func (c *Capture) connecting(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lookups.waiting, name)
	c.lookups.note(name)
}

func (l *lookups) note(name string) {
	if len(l.told) >= maxLookups || l.told == nil {
		l.told = map[string]struct{}{}
	}
	l.told[name] = struct{}{}
}

// tellLookups reports the names to which no connection came.
func (c *Capture) tellLookups() {
	c.lookups.telling.Lock()
	defer c.lookups.telling.Unlock()
	c.mu.Lock()
	l := &c.lookups
	if l.timer != nil {
		l.timer.Stop()
	}
	names := make([]string, 0, len(l.waiting))
	for name := range l.waiting {
		names = append(names, name)
		l.note(name)
	}
	l.waiting, l.timer = nil, nil
	c.mu.Unlock()
	slices.Sort(names)
	for _, name := range names {
		c.tellLookup(name)
	}
}

// tellLookup reports one name, unless something allows it by now. The rule is the one for the port that most connections
// go to: all are refused.
func (c *Capture) tellLookup(name string) {
	if c.server.possible(name) {
		return
	}
	v := c.server.policy().Decide(name, 443)
	c.server.reportEvent(violation.Event{Operation: violation.DNSQuery, Target: name, Rule: v.Rule, Entry: v.Entry, Reason: v.Reason,
		CommandID: c.server.identity})
}

// closeLookups reports what waits, and nothing after that: it waits for who is reporting.
func (c *Capture) closeLookups() {
	c.mu.Lock()
	c.lookups.closed = true
	c.mu.Unlock()
	c.tellLookups()
}
