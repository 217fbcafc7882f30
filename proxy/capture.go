package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// reasonDatagram is the reason of a datagram socket that was to be connected beyond loopback.
const reasonDatagram = "UDP is not forwarded"

// maxDatagrams is how many destinations of datagram sockets are told apart for reports; further ones go unreported. Each
// takes about 100 bytes.
const maxDatagrams = 1024

// Capture judges and dials for the programs of one sandbox that know no proxy: what they connect to is an address, and
// the broker of their connect(2) asks here. A connection is decided and routed like a CONNECT. Make one with
// [Server.NewCapture]. All methods may be called from any goroutine.
type Capture struct {
	server *Server
	names  *Names

	mu        sync.Mutex
	datagrams map[netip.AddrPort]struct{} // reported
	refused   map[attempt]bool            // whether the refusal that was reported was of an IPv4 address
	unreached map[attempt]unreached       // allowed by the callback
	lookups   lookups
}

// attempt is a thread's wish to reach a name. Programs connect to one address of it after the other.
type attempt struct {
	pid  int
	host string
	port uint16
}

// maxAttempts is of how many attempts the other address is waited for.
const maxAttempts = 256

// NewCapture returns a judge and dialler of captured connections. n holds the names that the sandbox's addresses stand
// for; nil: none of them does. key is the attribution key of the command, as for ServeFor.
func (s *Server) NewCapture(n *Names, key string) *Capture {
	return &Capture{server: s.view(key, nil), names: n, datagrams: map[netip.AddrPort]struct{}{}}
}

// Close ends what was captured, once the command has ended: dials are given up and tunnels closed. What the programs sent
// before their end is still delivered, as the kernel does for connections of its own, while it moves and for a few seconds
// at most. It does not wait for that, and returns nil; [Server.Close] waits.
func (c *Capture) Close() error {
	c.closeLookups()
	c.server.leave()
	return nil
}

// CaptureError is the refusal of a captured connection. The program sees its errno, EACCES, which errors.As finds.
type CaptureError struct {
	Target string // host:port; the name that an address stands for in place of the address
	Reason string // why, as in the violation line, not cleaned
}

// Error returns a sentence for a log.
func (e *CaptureError) Error() string {
	return "connection to " + violation.Clean(e.Target) + " refused: " + violation.Clean(e.Reason)
}

// Unwrap returns the errno.
func (e *CaptureError) Unwrap() []error { return []error{syscall.EACCES, errRefused} }

// Judge decides about a TCP destination that a thread asked for (pid: in the host's numbering, for the report). It never
// waits: if only the callback is left to decide, the way that it returns asks first. An address of the synthetic ranges
// stands for its name, and for nothing if it is not bound to one; every other address is judged as a literal. The error is
// a *[CaptureError], and the refusal has been reported.
func (c *Capture) Judge(pid int, dst netip.AddrPort) (*CapturedWay, error) {
	addr := dst.Addr().Unmap().WithZone("")
	a := asking{key: c.server.identity, pid: pid, host: addr.String(), port: dst.Port()}
	w := &CapturedWay{server: c.server, capture: c, is4: addr.Is4()}
	if c.names != nil && c.names.Synthetic(addr) {
		name, ok := c.names.Name(addr)
		if !ok {
			return nil, c.refuse(a, policy.Verdict{Rule: policy.RuleAllowedDomains, Reason: policy.ReasonNotAllowed})
		}
		a.host = name
		w.hold = func() func() { return c.names.Hold(addr) }
	}
	w.asking = a
	if w.rules, w.verdict = c.server.decideLoopback(dst); !w.verdict.Allowed {
		w.rules, w.verdict, w.undecided = c.server.decideNow(a)
	} else if !w.verdict.Host.IsLiteral() {
		w.local = addr
	}
	if !w.verdict.Allowed && !w.undecided {
		if w.hold != nil {
			c.connecting(a.host)
		}
		if w.hold != nil && c.otherAddress(attempt{pid, a.host, a.port}, addr.Is4()) {
			return nil, &CaptureError{violation.HostPort(a.host, a.port), w.verdict.Reason}
		}
		return nil, c.refuse(a, w.verdict)
	}
	if !w.undecided {
		if err := w.refuseOpaqueTunnel(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// refuse reports a refusal and makes the error of it.
func (c *Capture) refuse(a asking, v policy.Verdict) error {
	c.server.reportAs(a, v)
	return &CaptureError{violation.HostPort(a.host, a.port), v.Reason}
}

// otherAddress tells whether a refusal is of the second address of a name, of the other family, whose first was refused and
// reported: a program that tries both wants one thing, and that is one event. A program that tries again is told of again.
func (c *Capture) otherAddress(a attempt, is4 bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was4, reported := c.refused[a]; reported && was4 != is4 {
		delete(c.refused, a)
		return true
	}
	if len(c.refused) >= maxAttempts || c.refused == nil {
		c.refused = map[attempt]bool{}
	}
	c.refused[a] = is4
	return false
}

// Possible tells whether the policy as it is now could allow a canonical name on some port: by its lists, by the list of the
// command, or by the callback. It is what [Names.Possible] asks, so that names which nothing allows cannot use up the
// addresses of those that something does. It reports nothing and changes nothing.
func (c *Capture) Possible(name string) bool { return c.server.possible(name) }

// Loopback tells whether a loopback address is one of the host that the policy allows without asking
// ([policy.Network.Loopback]). unless are the addresses at which nothing in the sandbox may listen for that; none: it is the
// sandbox's own, as is every other address than of loopback. It reports nothing and changes nothing.
func (c *Capture) Loopback(dst netip.AddrPort) (unless []netip.AddrPort) {
	if _, v := c.server.decideLoopback(dst); v.Allowed {
		return policy.LoopbackUnless(dst, v.Host)
	}
	return nil
}

// Datagram is told that a datagram socket was to be connected beyond loopback, which is refused. It reports that, each
// destination once, unless the address is synthetic: resolvers connect datagram sockets to what they have looked up, only
// to see which address of their own would be used (RFC 6724 section 5), and want nothing sent.
func (c *Capture) Datagram(pid int, dst netip.AddrPort) {
	dst = netip.AddrPortFrom(dst.Addr().Unmap().WithZone(""), dst.Port())
	if c.names != nil && c.names.Synthetic(dst.Addr()) || !c.firstDatagram(dst) {
		return
	}
	c.server.reportAs(asking{key: c.server.identity, pid: pid, host: dst.Addr().String(), port: dst.Port()},
		policy.Verdict{Reason: reasonDatagram})
}

// firstDatagram reports whether a destination is to be reported, and remembers it.
func (c *Capture) firstDatagram(dst netip.AddrPort) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, told := c.datagrams[dst]; told || len(c.datagrams) >= maxDatagrams {
		return false
	}
	c.datagrams[dst] = struct{}{}
	return true
}

// CapturedWay is a captured connection that the policy allows, or leaves to the callback. It holds nothing until it is
// dialled, and may be dropped.
type CapturedWay struct {
	server    *Server
	capture   *Capture
	is4       bool // the address
	asked     bool // the callback, and it has allowed all of the attempt
	asking    asking
	rules     *Rules
	verdict   policy.Verdict
	undecided bool
	local     netip.Addr              // the address of the host's loopback that a name in verdict.Host allows; invalid: none
	hold      func() (release func()) // keeps the address bound to its name; nil: it stands for itself
}

// Dial asks the callback, if that is what is left, and opens the way: to the MITM socket, through the parent proxy, or
// directly, with the check of resolved addresses and the limits of a CONNECT. It takes one of the server's connections
// (Limits.Connections) and waits for one if there is none. The context ends the wait; the program has left then. errors.As
// finds the errno for the program in every error ([Errno]); refusals have been reported.
func (w *CapturedWay) Dial(ctx context.Context) (*CapturedUpstream, error) {
	s := w.server
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if err := w.acquire(ctx); err != nil {
		return nil, withErrno(err)
	}
	u := &CapturedUpstream{server: s, way: w, release: func() {}}
	if w.hold != nil {
		u.release = w.hold()
	}
	err := w.ask(ctx)
	if err == nil {
		if err = u.dial(ctx, w); err != nil && w.asked {
			w.capture.failedOnce(w.attempt(), w.is4, ctx.Err() != nil)
		}
	}
	if err != nil {
		u.release()
		<-s.slots
		return nil, withErrno(err)
	}
	return u, nil
}

// acquire waits for one of the server's connections, as long as a dial may take.
func (w *CapturedWay) acquire(ctx context.Context) error {
	s := w.server
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(s.limits.Dial)
	defer timer.Stop()
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return &errnoError{syscall.ETIMEDOUT, errTooMany}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errTooMany is a server that has as many connections as it may have.
var errTooMany = errors.New("as many connections are open as Limits.Connections allows")

// attempt is what the connection is part of.
func (w *CapturedWay) attempt() attempt { return attempt{w.asking.pid, w.asking.host, w.asking.port} }

// ask completes the decision.
func (w *CapturedWay) ask(ctx context.Context) (err error) {
	if !w.undecided {
		return nil
	}
	s := w.server
	if yes, whole := w.capture.answered(w.attempt(), w.is4); yes {
		w.asked = whole
		w.verdict.Allowed, w.verdict.Reason = true, ""
		w.rules, w.verdict = s.stillAllowed(w.asking, w.verdict)
	} else {
		if w.rules, w.verdict, err = s.decideByAsking(ctx, w.asking, w.verdict); err != nil {
			return err
		}
		w.asked = w.verdict.Allowed
	}
	if !w.verdict.Allowed {
		s.reportAs(w.asking, w.verdict)
		return &CaptureError{violation.HostPort(w.asking.host, w.asking.port), w.verdict.Reason}
	}
	return w.refuseOpaqueTunnel()
}

// refuseOpaqueTunnel refuses what is allowed and cannot be inspected, as a CONNECT is (NET-38).
func (w *CapturedWay) refuseOpaqueTunnel() error {
	v, refused := w.refusal()
	if !refused {
		return nil
	}
	w.server.reportTunnel(w.asking, v)
	return &CaptureError{violation.HostPort(w.asking.host, w.asking.port), v.Reason}
}

// CapturedUpstream is the far end of a captured connection. It is given up by Relay or by Close, once.
type CapturedUpstream struct {
	server   *Server
	way      *CapturedWay
	conn     net.Conn
	leftover []byte // what the destination has sent already
	release  func()
}

// dial fills in the connection. A refusal is reported.
func (u *CapturedUpstream) dial(ctx context.Context, w *CapturedWay) (err error) {
	s, a, h := u.server, w.asking, w.verdict.Host
	if a.port == 0 {
		return fmt.Errorf("port 0: %w", errConnectionRefused) // as connect(2) on the host would answer
	}
	if w.local.IsValid() && s.route(w.rules, h, false) == nil {
		// The program asked for this address, not for every one that the host's resolver has for the name.
		h = config.Host{Name: w.local.String(), Addr: w.local}
	}
	if u.conn = s.dialAtOnce(w.rules, h, a.port); u.conn != nil {
		return nil
	}
	if u.conn, u.leftover, err = s.dialTunnel(ctx, w.rules, h, a.port); err == nil {
		return nil
	}
	var resolved *ResolvedError
	if errors.As(err, &resolved) {
		s.reportAs(a, policy.Verdict{Reason: resolved.Reason()})
	}
	s.log.Debug("proxy: dial failed", "host", h.Name, "port", a.port, "error", err)
	return err
}

// Relay moves bytes between the program's end of the connection and the upstream until both directions have ended; an end
// of input on one side is passed on (NET-25). It takes ownership of conn and returns at once. done, unless it is nil, is
// called once when the tunnel has ended, possibly before Relay returns.
func (u *CapturedUpstream) Relay(conn net.Conn, done func()) {
	s := u.server
	prepareCaptured(conn)
	if !s.track(conn) { // the server is closed, and so is conn
		_ = u.Close()
		if done != nil {
			done()
		}
		return
	}
	ended := func() {
		u.release()
		if done != nil {
			done()
		}
	}
	if s.terminates(u.way.rules, u.way.verdict.Host) {
		go func() {
			defer s.wg.Done()
			u.serve(conn, ended)
		}()
		return
	}
	defer s.wg.Done() // the tunnel counts for itself from here on
	s.joinThen(conn, u.conn, u.leftover, nil, ended)
}

// Close gives the connection up. It is in place of Relay and returns nil.
func (u *CapturedUpstream) Close() error {
	u.server.forget(u.conn)
	u.release()
	<-u.server.slots
	return nil
}
