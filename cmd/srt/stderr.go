package main

import (
	"io"
	"sync"
)

// lockedWriter makes a writer safe for concurrent use: the run, the session's reports and the control channel all have
// something to say on standard error.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write passes p on in one piece.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
