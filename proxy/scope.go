package proxy

import (
	"context"
	"net"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/relay"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// scope is what the connections of one view of a server have in common: they end together, when the command does whose
// view it is.
type scope struct {
	end   context.CancelFunc
	ended bool // guarded by the mutex of the server
	// sessions are those of TLS with upstream servers.
	sessions tlsSessions
	// room is what is left for bodies that are held.
	room commandRoom
}

// tracked says what a connection belongs to.
type tracked struct {
	scope  *scope
	tunnel *relay.Running // nil: it is not, or not yet, one end of a tunnel
	client bool           // it is the client's end of it
}

// view returns the server as the clients of one command see it, who were told addresses that stand for names; n is nil if
// they were not.
func (s *Server) view(key string, n *Names) *Server {
	v := &Server{shared: s.shared, identity: s.identity, names: n, onViolation: s.onViolation, scope: &scope{}}
	v.ctx, v.scope.end = context.WithCancel(s.ctx)
	s.mu.Lock()
	s.views[v] = struct{}{}
	s.mu.Unlock()
	if key == "" {
		return v
	}
	v.identity = key
	if onViolation := s.onViolation; onViolation != nil {
		v.onViolation = func(e violation.Event) {
			e.CommandID = key
			onViolation(e)
		}
	}
	return v
}

// track registers a connection for the end of its view and counts a goroutine of the server, which the caller starts or
// already is. If the view or the server has ended it closes the connection instead and returns false.
func (s *Server) track(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.scope.ended {
		_ = c.Close()
		return false
	}
	s.conns[c] = tracked{scope: s.scope}
	s.wg.Add(1)
	return true
}

// watch registers a connection that has no goroutine of its own.
func (s *Server) watch(c net.Conn) bool {
	if !s.track(c) {
		return false
	}
	s.wg.Done()
	return true
}

// forget closes a tracked connection and releases it.
func (s *Server) forget(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// release forgets a client and lets the next one in.
func (s *Server) release(c net.Conn) {
	s.forget(c)
	<-s.slots
}

// join relays between a client and an upstream connection, both tracked, and returns at once: the goroutine that read the
// client's request ends and its buffers and stack go back, so that an idle tunnel costs little. It takes ownership.
func (s *Server) join(client, upstream net.Conn, toClient, toUpstream []byte) {
	s.joinThen(client, upstream, toClient, toUpstream, nil)
}

// joinThen is join with a function to be called, unless it is nil, when the tunnel has ended.
func (s *Server) joinThen(client, upstream net.Conn, toClient, toUpstream []byte, done func()) {
	s.wg.Add(1)
	tunnel := relay.Tunnel{
		A: client, B: upstream, ToA: toClient, ToB: toUpstream,
		Done: func() {
			s.forget(upstream)
			s.release(client)
			if done != nil {
				done()
			}
			s.wg.Done()
		},
	}.Start()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range [2]net.Conn{client, upstream} {
		if t, open := s.conns[c]; open {
			t.tunnel, t.client = tunnel, c == client
			s.conns[c] = t
		}
	}
	if s.scope.ended { // since the two were tracked
		tunnel.Close()
	}
	if s.sweeper == nil && !s.closed {
		s.sweeper = time.AfterFunc(s.sweepEvery, s.sweep)
	}
}

// sweepEvery is how often tunnels are looked at in which a client may have closed its side for good unseen: it had ended its
// sending before, or sent bytes that no server takes. Looking takes about a microsecond for each tunnel.
const sweepEvery = 30 * time.Second

// sweep ends the tunnels that are abandoned, and comes back while there are tunnels. Else a program could take all
// connections by making ones that it does not even keep.
func (s *Server) sweep() {
	var tunnels []*relay.Running
	s.mu.Lock()
	for _, t := range s.conns {
		if t.client {
			tunnels = append(tunnels, t.tunnel)
		}
	}
	s.mu.Unlock()
	for _, t := range tunnels {
		if t.Abandoned() {
			t.Close()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeper = nil
	if len(s.conns) > 0 && !s.closed {
		s.sweeper = time.AfterFunc(s.sweepEvery, s.sweep)
	}
}

// How long what a program has sent may take to be delivered after its end.
const (
	leavingTick  = 10 * time.Millisecond
	leavingStall = 50 * leavingTick // without a byte that moves
	leavingTotal = 300 * leavingTick
)

// leave ends the connections of a view whose clients have ended. It returns at once, and does nothing if it was called
// before. What is in a tunnel on its way to a server is still delivered, for as long as it moves and a few seconds at most.
func (s *Server) leave() {
	s.scope.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scope.ended {
		return
	}
	s.scope.ended = true
	delete(s.views, s)
	s.idle.close(s.scope)
	tunnels := map[*relay.Running]*leavingTunnel{}
	for c, t := range s.conns {
		switch {
		case t.scope != s.scope:
		case t.tunnel == nil:
			_ = c.Close()
		case tunnels[t.tunnel] == nil:
			tunnels[t.tunnel] = &leavingTunnel{conn: c, waiting: -1}
			t.tunnel.Leave()
		}
	}
	if len(tunnels) == 0 {
		return
	}
	s.wg.Add(1)
	s.leaving.Add(1)
	go func() {
		defer s.wg.Done()
		defer s.leaving.Done()
		s.seeOut(tunnels)
	}()
}

// cut ends the connections of a view at once, although its clients are still there.
func (s *Server) cut() {
	s.scope.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scope.ended = true
	delete(s.views, s)
	s.idle.close(s.scope)
	for c, t := range s.conns {
		switch {
		case t.scope != s.scope:
		case t.tunnel != nil:
			t.tunnel.Close()
		default:
			_ = c.Close()
		}
	}
}

// leavingTunnel is a tunnel whose client has ended.
type leavingTunnel struct {
	conn    net.Conn // one of its ends, tracked until the tunnel has ended
	waiting int      // bytes, when last asked
	since   time.Duration
}

// seeOut waits for the end of tunnels, and ends those in which nothing moves.
func (s *Server) seeOut(tunnels map[*relay.Running]*leavingTunnel) {
	ticker := time.NewTicker(leavingTick)
	defer ticker.Stop()
	for past := time.Duration(0); ; past += leavingTick {
		for tunnel, t := range tunnels {
			waiting := tunnel.Waiting()
			if waiting != t.waiting {
				t.waiting, t.since = waiting, past
			}
			if s.over(t.conn) || past-t.since >= leavingStall || past >= leavingTotal {
				tunnel.Close()
				delete(tunnels, tunnel)
			}
		}
		if len(tunnels) == 0 {
			return
		}
		<-ticker.C
	}
}

// over reports whether a connection is tracked no more.
func (s *Server) over(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, open := s.conns[c]
	return !open
}
