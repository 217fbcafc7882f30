package proxy

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/relay"
)

// The bounds of the pool of idle upstream connections, of which there are fewer where few connections are allowed. The time is below the idle time of NET-23.
const (
	idleTime   = 4 * time.Second
	idleTotal  = 64
	idlePerKey = 16
)

// upstreamKey says which requests a connection can carry. The attribution key and the view are part of it, so that no
// connection passes from one command to another.
type upstreamKey struct {
	scope   *scope
	command string
	parent  *parentEndpoint // nil: direct
	host    string          // canonical, empty with a parent
	port    uint16
}

// upstream is a connection that carries plain requests.
type upstream struct {
	key   upstreamKey
	rules *Rules // that its address was judged by
	conn  net.Conn
	br    *bufio.Reader
	bw    *bufio.Writer
	// bound connections stay with their client: some authentication schemes hold for a connection, not for a request.
	bound  bool
	reused bool
	expiry *time.Timer
}

func newUpstream(key upstreamKey, rules *Rules, conn net.Conn) *upstream {
	u := &upstream{key: key, rules: rules, conn: conn}
	u.br = readers.Get().(*bufio.Reader)
	u.br.Reset(conn)
	u.bw = writers.Get().(*bufio.Writer)
	u.bw.Reset(conn)
	return u
}

// fit reports whether an idle connection may carry another request: nothing has changed about the rules that its address
// was judged by (NET-16), and the server has neither closed it nor sent something nobody asked for.
func (u *upstream) fit(key upstreamKey, rules *Rules) bool {
	return u.key == key && u.rules == rules && u.br.Buffered() == 0 && relay.Quiet(u.conn)
}

// drop closes an upstream connection that no other goroutine uses any more.
func (s *Server) drop(u *upstream) {
	s.forget(u.conn)
	u.br.Reset(nil)
	readers.Put(u.br)
	u.bw.Reset(nil)
	writers.Put(u.bw)
}

// park keeps an idle connection for other clients of the same command, or drops it.
func (s *Server) park(u *upstream) {
	if u.bound || !s.idle.put(u, func() { s.drop(u) }) {
		s.drop(u)
	}
}

func (c *client) upstreamKey(e *exchange) upstreamKey {
	if e.parent != nil {
		return upstreamKey{scope: c.scope, command: c.key, parent: e.parent}
	}
	return upstreamKey{scope: c.scope, command: c.key, host: e.host.Name, port: e.target.port}
}

// reuse returns an idle connection for a request, the client's last one if it can be, or nil.
func (c *client) reuse(e *exchange) *upstream {
	if !e.reusable() && (c.upstream == nil || !c.upstream.bound) {
		return nil
	}
	key := c.upstreamKey(e)
	if u := c.upstream; u != nil {
		c.upstream = nil
		if u.fit(key, e.rules) {
			u.reused = true
			return u
		}
		if u.key == key {
			c.drop(u)
		} else {
			c.park(u)
		}
	}
	for {
		u := c.idle.take(key)
		if u == nil || u.fit(key, e.rules) {
			if u != nil {
				u.reused = true
			}
			return u
		}
		c.drop(u)
	}
}

// keepUpstream makes u the connection that the client's next request tries first.
func (c *client) keepUpstream(u *upstream) {
	if c.upstream != nil {
		c.park(c.upstream)
	}
	c.upstream = u
}

// dialPlain connects to where a plain request goes: the parent, or the target, over TLS if it is https (NET-28). An https
// target behind a parent is reached by a tunnel (NET-60).
func (c *client) dialPlain(ctx context.Context, e *exchange) (net.Conn, error) {
	if e.parent != nil {
		return c.dialParent(ctx, e.parent)
	}
	if !e.target.tls {
		return c.dialDirect(ctx, e.rules, e.host, e.target.port)
	}
	conn, leftover, err := c.dialTunnel(ctx, e.rules, e.host, e.target.port)
	if err != nil {
		return nil, err
	}
	if len(leftover) > 0 { // a TLS server does not speak first
		c.forget(conn)
		return nil, errParentRefused
	}
	return c.secure(ctx, conn, e.host)
}

// idlePool is the idle upstream connections that belong to no client.
type idlePool struct {
	limit  int
	mu     sync.Mutex
	conns  map[upstreamKey][]*upstream
	count  int
	closed bool
}

func (p *idlePool) init(limit int) { p.limit, p.conns = limit, map[upstreamKey][]*upstream{} }

// put adds a connection, for which drop is called once its time is over. false: there is no room.
func (p *idlePool) put(u *upstream, drop func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.count >= p.limit || len(p.conns[u.key]) >= idlePerKey {
		return false
	}
	p.conns[u.key] = append(p.conns[u.key], u)
	p.count++
	u.expiry = time.AfterFunc(idleTime, func() {
		if p.remove(u) {
			drop()
		}
	})
	return true
}

// take returns the connection that was added last, or nil.
func (p *idlePool) take(key upstreamKey) *upstream {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.conns[key]
	if len(list) == 0 {
		return nil
	}
	u := list[len(list)-1]
	p.cut(key, len(list)-1)
	u.expiry.Stop()
	return u
}

// remove takes out one connection and reports whether it was still there.
func (p *idlePool) remove(u *upstream) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.conns[u.key] {
		if other == u {
			p.cut(u.key, i)
			return true
		}
	}
	return false
}

func (p *idlePool) cut(key upstreamKey, i int) {
	list := p.conns[key]
	copy(list[i:], list[i+1:])
	list[len(list)-1] = nil
	if list = list[:len(list)-1]; len(list) == 0 {
		delete(p.conns, key)
	} else {
		p.conns[key] = list
	}
	p.count--
}

// close takes out the connections of a view, or with nil all and takes no more, and stops their timers. The connections
// themselves are closed by the server, which tracks them.
func (p *idlePool) close(of *scope) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = p.closed || of == nil
	for key, list := range p.conns {
		if of != nil && key.scope != of {
			continue
		}
		for _, u := range list {
			u.expiry.Stop()
		}
		p.count -= len(list)
		delete(p.conns, key)
	}
}
