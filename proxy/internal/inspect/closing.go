package inspect

import (
	"net"
	"time"
)

// socket returns the connection beneath layers such as TLS.
func socket(c net.Conn) net.Conn {
	for {
		layer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		inner := layer.NetConn()
		if inner == nil {
			return c
		}
		c = inner
	}
}

// closeWrite ends the sending side of a connection and of what is beneath it: close_notify, then FIN. false: the
// connection has no such thing.
func closeWrite(c net.Conn) bool {
	done := false
	for {
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			done = half.CloseWrite() == nil || done
		}
		layer, ok := c.(interface{ NetConn() net.Conn })
		if !ok || layer.NetConn() == nil {
			return done
		}
		c = layer.NetConn()
	}
}

// abort closes a connection so that its peer cannot take what it got for complete: without close_notify, and as a reset.
func abort(c net.Conn) {
	s := socket(c)
	if tcp, ok := s.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = s.Close()
}

// linger ends the sending side and drops what the client still sends, for a time: closing a socket with unread input resets
// the connection, and the reset can overtake an answer (TLS-46, RFC 9112 section 9.6). What is dropped is not decrypted.
func (c *client) linger(d time.Duration) {
	// A close_notify can wait for a client that reads nothing.
	_ = c.conn.SetWriteDeadline(time.Now().Add(d))
	if !closeWrite(c.conn) {
		return
	}
	s := socket(c.conn)
	_ = s.SetReadDeadline(time.Now().Add(d))
	b := blocks.Get().(*block)
	defer blocks.Put(b)
	for {
		if _, err := s.Read(b.data()); err != nil {
			return
		}
	}
}

// leave notes that the client has left, and ends what is under way for it.
func (c *client) leave() {
	c.gone.Store(true)
	c.mu.Lock()
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel(ErrClientGone)
	}
	c.severUp()
}

// sever cuts both connections, whatever is on its way.
func (c *client) sever() {
	c.mu.Lock()
	c.cut = true
	c.mu.Unlock()
	abort(c.conn)
	c.severUp()
}
