package decider

import (
	"io"
	"log/slog"
	"net"
)

func newDiscard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// stuck is a stream that takes nothing and says nothing.
type stuck struct{ closed chan struct{} }

func (s *stuck) Read([]byte) (int, error) {
	<-s.closed
	return 0, io.EOF
}

func (s *stuck) Write([]byte) (int, error) {
	<-s.closed
	return 0, io.ErrClosedPipe
}

func (s *stuck) Close() error {
	close(s.closed)
	return nil
}

func (r *running) tryDial() (net.Conn, error) { return net.Dial("tcp", r.addr) }
