package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// errDNSSockets is a Serve without one of its sockets.
var errDNSSockets = errors.New("the DNS stub needs a UDP socket and a TCP listener; resolvers try UDP first and some only TCP")

// DNS is the sandbox's resolver: a stub that answers from a table of [Names] and asks nobody. It knows no policy, forwards
// nothing and has no socket but those it serves, so no query carries anything out of a sandbox. Make one with [NewDNS].
//
// It answers A and AAAA of every well-formed name (RFC 1035, RFC 3596), single labels included, with the name's synthetic
// addresses; PTR of those and of loopback addresses; HTTPS and SVCB (RFC 9460) with no record; every other type with
// REFUSED. A malformed name (NET-9) does not exist, the name of a full table is SERVFAIL. EDNS(0) is answered (RFC 6891),
// TCP clients may send several queries on a connection (RFC 7766).
//
// All methods may be called from any goroutine.
type DNS struct {
	// Local tells whether a name below localhost, in lower case without final dot ("app.localhost"), is answered with the
	// sandbox's own loopback (RFC 6761 6.3). Nil means all are. A name that it denies gets synthetic addresses like any
	// other, which is how a *.localhost name that the policy allows reaches the host. It is called from several
	// goroutines and must not be changed once Serve was called.
	Local func(name string) bool

	// LookedUp is told of the names that are asked for, see [Capture.LookedUp]. Nil means nobody is. The same holds for it.
	LookedUp func(name string)

	names *Names
	log   *slog.Logger
	idle  time.Duration

	toldFull atomic.Bool

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	open   map[io.Closer]struct{} // sockets and connections, to be closed by Close
	conns  dnsConns
	wg     sync.WaitGroup // every goroutine, the callers of Serve included
}

// NewDNS makes a stub that answers from a table, which it shares with whoever judges connections. A nil log means none.
func NewDNS(n *Names, log *slog.Logger) *DNS {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &DNS{names: n, log: log, idle: dnsIdle, open: map[io.Closer]struct{}{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.conns.list = map[*dnsConn]struct{}{}
	return d
}

// Serve answers the queries that arrive on a UDP socket and on a TCP listener until Close is called (nil) or one of the two
// fails for good. It takes ownership of both, also when it returns an error; TCP clients that are connected when a socket fails
// are served until they fall silent. After Close the error is [ErrServerClosed].
func (d *DNS) Serve(udp net.PacketConn, tcp net.Listener) error {
	if udp == nil || tcp == nil {
		return errDNSSockets
	}
	if !d.track(udp) {
		_ = tcp.Close()
		return ErrServerClosed
	}
	defer d.forget(udp)
	if !d.track(tcp) {
		return ErrServerClosed
	}
	defer d.forget(tcp)
	failed := make(chan error, 2)
	go func() { failed <- d.serveUDP(udp) }()
	go func() { failed <- d.serveTCP(tcp) }()
	first := <-failed
	_, _ = udp.Close(), tcp.Close() // the other loop ends as well
	second := <-failed
	switch {
	case d.ctx.Err() != nil:
		return nil
	case errors.Is(first, net.ErrClosed):
		return second
	}
	return first
}

// Close closes the sockets and every connection and waits until Serve and all goroutines have ended. It returns nil;
// further calls wait as well.
func (d *DNS) Close() error {
	d.mu.Lock()
	d.closed = true
	d.cancel()
	for c := range d.open {
		_ = c.Close()
	}
	d.mu.Unlock()
	d.wg.Wait()
	return nil
}

// track registers something for Close and counts a goroutine. If the stub is closed it closes it instead and returns false.
func (d *DNS) track(c io.Closer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = c.Close()
		return false
	}
	d.open[c] = struct{}{}
	d.wg.Add(1)
	return true
}

// forget closes what was tracked and ends its goroutine's count.
func (d *DNS) forget(c io.Closer) {
	_ = c.Close()
	d.mu.Lock()
	delete(d.open, c)
	d.mu.Unlock()
	d.wg.Done()
}

// warnFull says once that names go unanswered.
func (d *DNS) warnFull(err error) {
	if d.toldFull.CompareAndSwap(false, true) {
		d.log.Warn("dns: connections of the sandbox hold more names than are kept; further ones do not resolve until "+
			"connections end", "error", err)
	}
}

// serveUDP answers packets one after another. Sockets of the net package are read without allocating.
func (d *DNS) serveUDP(udp net.PacketConn) error {
	if c, ok := udp.(*net.UDPConn); ok {
		return servePackets(d, c.ReadFromUDPAddrPort, c.WriteToUDPAddrPort)
	}
	return servePackets(d, udp.ReadFrom, udp.WriteTo)
}

// servePackets is the loop over packets: the answer is made and sent before the next query is read, so whatever arrives
// takes one buffer of each kind. What does not fit the socket's queue is dropped by the kernel, and clients ask again.
func servePackets[A any](d *DNS, read func([]byte) (int, A, error), write func([]byte, A) (int, error)) error {
	in, out := make([]byte, maxDNSQuery+1), make([]byte, 0, maxDNSAnswer)
	for failures := 0; ; {
		n, from, err := read(in)
		switch {
		case errors.Is(err, net.ErrClosed) || d.ctx.Err() != nil:
			return net.ErrClosed
		case err != nil:
			// One packet's trouble is not the socket's; if it is, waiting keeps the loop from turning without pause.
			d.pause(&failures, "dns: a packet could not be read", err)
			continue
		}
		failures = 0
		if reply := d.answer(out, in[:n]); len(reply) > 0 {
			if _, err := write(reply, from); err != nil {
				d.log.Debug("dns: an answer could not be sent", "error", err)
			}
		}
	}
}

// pause notes an error and waits, longer after each one in a row, or until Close.
func (d *DNS) pause(failures *int, what string, err error) {
	*failures++
	delay := min(time.Millisecond<<min(*failures, 10), time.Second)
	d.log.Debug(what+", trying again", "error", err, "delay", delay)
	select {
	case <-time.After(delay):
	case <-d.ctx.Done():
	}
}
