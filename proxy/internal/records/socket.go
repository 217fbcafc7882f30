package records

import (
	"net"
	"sync"
)

// bufferSize is how many bytes are read ahead: four records.
const bufferSize = 64 << 10

// aheadFrom is how many bytes must come at once for the far end to count as ahead.
const aheadFrom = 4 << 10

var (
	readBuffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}
	// Each record adds 5 bytes of header and up to 17 of padding and tag.
	writeBuffers = sync.Pool{New: func() any { b := make([]byte, 0, bufferSize+1<<10); return &b }}
)

// Socket is the connection beneath a TLS connection, which is the only one to read from it and to write to it. Its other
// methods may be called from any goroutine.
type Socket struct {
	net.Conn

	// Of the one that reads; package tls and [Conn] see to it that there is one at a time.
	ahead    bool // the far end is: more comes than is asked for
	buffer   *[bufferSize]byte
	from, to int  // what of buffer is unread; from < to unless buffer is nil
	waitless bool // only what is in buffer is to be read

	mu     sync.Mutex // guards the following, and the order of writes
	holds  bool
	held   *[]byte // nil: nothing is held back
	broken error   // of a write: what follows would follow a gap
}

// Beneath makes the layer beneath a TLS connection. Closing it closes conn.
func Beneath(conn net.Conn) *Socket { return &Socket{Conn: conn} }

// NetConn returns the connection itself.
func (s *Socket) NetConn() net.Conn { return s.Conn }

// CloseWrite ends the sending side, if the connection has such a thing; if not, that is no error.
func (s *Socket) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Read reads what has been read ahead, or from the connection.
func (s *Socket) Read(p []byte) (int, error) {
	switch {
	case s.buffer != nil:
		return s.unread(p), nil
	case s.waitless:
		return 0, errNothingThere
	case !s.ahead:
		n, err := s.Conn.Read(p)
		s.ahead = n == len(p) && n >= aheadFrom
		return n, err
	}
	buffer := readBuffers.Get().(*[bufferSize]byte)
	n, err := s.Conn.Read(buffer[:])
	s.ahead = n > bufferSize/2
	if n <= 0 {
		readBuffers.Put(buffer)
		return 0, err
	}
	s.buffer, s.from, s.to = buffer, 0, n // an error comes again, as it does from any socket
	return s.unread(p), nil
}

func (s *Socket) unread(p []byte) int {
	n := copy(p, s.buffer[s.from:s.to])
	if s.from += n; s.from == s.to {
		readBuffers.Put(s.buffer)
		s.buffer = nil
	}
	return n
}

// errNothingThere is a read that would have had to wait. To package tls it is a deadline that has passed, after which a
// connection can be read from as before.
var errNothingThere error = nothingThere{}

type nothingThere struct{}

// Error implements error.
func (nothingThere) Error() string { return "nothing has been read ahead" }

// Timeout implements [net.Error].
func (nothingThere) Timeout() bool { return true }

// Temporary is what keeps package tls from taking the error for the end of the connection.
func (nothingThere) Temporary() bool { return true }

// Write writes, or holds back what is to be written with more.
func (s *Socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.broken != nil:
		return 0, s.broken
	case s.holds:
		if s.held == nil {
			s.held = writeBuffers.Get().(*[]byte)
		}
		*s.held = append(*s.held, p...)
		return len(p), nil
	}
	return s.write(p)
}

// write writes at once. mu is held.
func (s *Socket) write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.broken = err
	return n, err
}

// hold begins to hold back what is written.
func (s *Socket) hold() {
	s.mu.Lock()
	s.holds = true
	s.mu.Unlock()
}

// flush writes what was held back.
func (s *Socket) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = false
	if s.held == nil {
		return s.broken
	}
	err := s.broken
	if err == nil {
		_, err = s.write(*s.held)
	}
	*s.held = (*s.held)[:0]
	writeBuffers.Put(s.held)
	s.held = nil
	return err
}
