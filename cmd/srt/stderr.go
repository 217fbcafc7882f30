package main

import (
	"io"
	"os"
	"sync"
)

// stderrIsTerminal tells whether standard error is a terminal, or another device that nobody is disturbed by.
func stderrIsTerminal() bool {
	info, err := os.Stderr.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

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
