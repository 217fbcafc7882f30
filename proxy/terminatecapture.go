package proxy

import (
	"bufio"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// A program that knows no proxy has sent no CONNECT that could be answered, and its connection is dialled before anybody
// knows what it is for. It is terminated like a tunnel if its own first bytes are TLS. A server that speaks first is none of
// TLS, so that nobody has to wait for a program that waits itself.

// refusal tells whether a captured connection is refused before it is dialled, as it cannot be inspected (REQ-4).
func (w *CapturedWay) refusal() (policy.Verdict, bool) {
	if w.server.terminates(w.rules, w.verdict.Host) {
		return policy.Verdict{}, false
	}
	w.server.noteExcluded(w.verdict.Host, w.asking.port)
	return w.server.opaqueRefusal(w.rules, w.verdict.Host, w.asking.port, reasonOpaque)
}

// spoken is what the two sides have said by the time that one of them has told what the connection is.
type spoken struct {
	program, server []byte
	reset           bool // the server has reset the connection
}

// listen waits for the side that speaks first: the program with as many bytes as decide, or the server. The end of either
// side is as good as a word. Nothing that was said is lost.
func (u *CapturedUpstream) listen(conn net.Conn) spoken {
	s := spoken{server: u.leftover}
	if len(s.server) > 0 {
		return s
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		buf := make([]byte, 512)
		n, err := u.conn.Read(buf)
		s.server = buf[:n]
		s.reset = errors.Is(err, syscall.ECONNRESET)
		if n > 0 || !isTimeout(err) {
			_ = conn.SetReadDeadline(aLongTimeAgo)
		}
	}()
	program, _ := firstBytes(conn, nil)
	_ = u.conn.SetReadDeadline(aLongTimeAgo)
	<-heard
	s.program = program
	_ = u.conn.SetReadDeadline(time.Time{})
	_ = conn.SetReadDeadline(time.Time{})
	return s
}

// serve finds out what a captured connection is and serves it, terminated or as a tunnel that cannot be read. conn is
// tracked. ended is called once it has ended, and gives back what the way and the upstream hold.
func (u *CapturedUpstream) serve(conn net.Conn, ended func()) {
	said := u.listen(conn)
	s, w := u.server, u.way
	switch {
	case len(said.server) == 0 && isTLS(said.program):
		u.terminate(conn, said.program)
	case said.reset && len(said.server) == 0:
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // as the program would see it without srt
		}
	default:
		v, refused := s.opaqueRefusal(w.rules, w.verdict.Host, w.asking.port, reasonNoTLS)
		if !refused {
			s.joinThen(conn, u.conn, said.server, said.program, ended)
			return
		}
		if len(said.program)+len(said.server) > 0 { // if not, it was merely opened and closed (TLS-21)
			s.reportTunnel(w.asking, v)
		}
	}
	if u.conn != nil {
		s.forget(u.conn)
	}
	s.release(conn)
	ended()
}

// terminate serves a program whose first bytes are TLS. The connection that is open already carries the first upstream leg.
// There is nothing that could be told to a program for which there is no slot.
func (u *CapturedUpstream) terminate(conn net.Conn, sent []byte) {
	s, w := u.server, u.way
	held, ok := s.takeSlot(w.rules, w.asking)
	if !ok {
		return
	}
	defer held.give()
	t := newTunnel(s, w.asking, w.verdict.Host)
	t.local, t.ready, u.conn = w.local, u.conn, nil
	br := readers.Get().(*bufio.Reader)
	t.serve(conn, br, sent, time.Now().Add(w.rules.Termination.timeout()))
	br.Reset(nil)
	readers.Put(br)
}
