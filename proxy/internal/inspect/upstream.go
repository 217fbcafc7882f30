package inspect

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/relay"
)

// upstream is the connection that a client's requests go out on, never shared (TLS-38). Between two requests it holds no
// buffer.
type upstream struct {
	conn   net.Conn
	key    any
	reused bool
}

// connect returns the connection for a request: the one of the request before it, or a new one.
func (c *client) connect(ctx context.Context, out *Outgoing) (*upstream, error) {
	if u := c.up; u != nil {
		if u.key == out.Key && u.quiet() {
			u.reused = true
			return u, nil
		}
		c.dropUp()
	}
	if out.Dial == nil {
		return nil, fmt.Errorf("%w: nothing says how to reach its server", ErrOutgoing)
	}
	conn, err := out.Dial(ctx)
	if err != nil {
		return nil, err
	}
	u := &upstream{conn: conn, key: out.Key}
	c.mu.Lock()
	c.up = u
	late := c.cut || c.gone.Load()
	c.mu.Unlock()
	if late {
		c.dropUp()
		return nil, ErrClientGone
	}
	return u, nil
}

// quiet reports whether an idle connection can carry another request: the server has neither closed it nor sent anything
// that nobody asked for, which would be taken for the next response. Where it cannot be asked it is, as what the server did
// shows when the response is read.
func (u *upstream) quiet() bool {
	s := socket(u.conn)
	if _, ok := s.(syscall.Conn); ok && !relay.Quiet(s) {
		return false
	}
	if s == u.conn {
		return true
	}
	// A layer such as TLS may hold bytes that its socket no longer has. They can be read although the deadline has passed.
	_ = u.conn.SetReadDeadline(aLongTimeAgo)
	var b [1]byte
	n, err := u.conn.Read(b[:])
	_ = u.conn.SetReadDeadline(time.Time{})
	return n == 0 && isTimeout(err)
}

// dropUp closes the upstream connection, if there is one, once nothing uses it any more.
func (c *client) dropUp() {
	c.mu.Lock()
	u := c.up
	c.up = nil
	c.mu.Unlock()
	if u != nil {
		_ = u.conn.Close()
	}
}

// severUp cuts the upstream connection under whatever uses it, so that a request that was cut short cannot look complete
// (TLS-34).
func (c *client) severUp() {
	c.mu.Lock()
	u := c.up
	c.mu.Unlock()
	if u != nil {
		abort(u.conn)
	}
}

// unsentUp is how many bytes for the server have not been taken.
func (c *client) unsentUp() uint64 {
	c.mu.Lock()
	u := c.up
	c.mu.Unlock()
	if u == nil {
		return 0
	}
	return uint64(relay.Unsent(socket(u.conn)))
}

// getReader and getWriter lend buffers for one exchange.
func getReader(c net.Conn) *bufio.Reader {
	br := readers.Get().(*bufio.Reader)
	br.Reset(c)
	return br
}

func putReader(br *bufio.Reader) {
	br.Reset(nil)
	readers.Put(br)
}

func (c *client) getWriter(to net.Conn) *bufio.Writer {
	bw := writers.Get().(*bufio.Writer)
	bw.Reset(stallWriter{c, to})
	return bw
}

func putWriter(bw *bufio.Writer) {
	bw.Reset(nil)
	writers.Put(bw)
}
