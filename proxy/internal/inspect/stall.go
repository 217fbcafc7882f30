package inspect

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/relay"
)

// strikes is how many looks in a row must find nothing moved before a connection is cut (TLS-44).
const strikes = 5

// stall finds out that bytes of an exchange no longer move. A deadline for each write would not do: one write of a record of
// TLS can take a slow reader long, a write that timed out leaves a TLS connection broken, and a socket whose peer reads
// slowly takes new bytes only once a good part of its queue is gone. So nothing has a deadline; a timer looks a few times in
// Limits.Stall whether anything has moved, the socket's queue included.
type stall struct {
	c       *client
	pending atomic.Int32  // operations under way that should move bytes
	moved   atomic.Uint64 // of them, those that did

	mu     sync.Mutex
	timer  *time.Timer
	every  time.Duration
	ended  bool
	seen   bool // last is from a look at which something was pending
	last   [3]uint64
	struck int
}

func (s *stall) start(c *client) {
	s.c = c
	s.mu.Lock()
	defer s.mu.Unlock()
	s.every = max(c.l.Stall/strikes, time.Millisecond)
	s.timer = time.AfterFunc(s.every, s.look)
}

func (s *stall) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.timer.Stop()
}

func (s *stall) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	if s.pending.Load() == 0 {
		s.seen, s.struck = false, 0
	} else {
		now := [3]uint64{s.moved.Load(), uint64(relay.Unsent(socket(s.c.conn))), s.c.unsentUp()}
		if s.seen && now == s.last {
			s.struck++
		} else {
			s.struck = 0
		}
		s.seen, s.last = true, now
		if s.struck >= strikes {
			s.c.leave()
			s.c.sever()
			return
		}
	}
	s.timer.Reset(s.every)
}

// begin and end enclose an operation that should move bytes.
func (s *stall) begin() { s.pending.Add(1) }

func (s *stall) end() {
	s.moved.Add(1)
	s.pending.Add(-1)
}

// stallWriter writes to one of a client's connections and counts as something that should move.
type stallWriter struct {
	c *client
	w io.Writer
}

func (w stallWriter) Write(p []byte) (int, error) {
	w.c.stall.begin()
	defer w.c.stall.end()
	return w.w.Write(p)
}
