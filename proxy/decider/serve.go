package decider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// proxyRun is one run of Serve, from the hello on.
type proxyRun struct {
	*settings
	link     *link
	dialer   *proxy.Dialer
	stripped stripper
	held     budget
	tunnels  chan struct{} // one for each tunnel
	slots    chan struct{} // one for each connection
	long     chan struct{} // one for each connection that may send long heads

	ctx   context.Context // its end cuts everything
	drain context.Context // its end closes what is idle, and the rest after its answer
	conns sync.WaitGroup
}

// Serve is the proxy: it forwards the requests that clients of ln make once the decider at the other end of link has allowed
// each (PRX-70). It begins with the hello, for which there is no time limit, and accepts nothing before (PRX-4). It returns
// when ctx ends or the link dies, after the orderly end of PRX-6, which takes at most about a second.
//
// It takes ownership of ln and of link and closes both. Close of link must end a Read and a Write that are under way, as that
// of a net.Conn does; a Unix socket that ln was made from by net.FileListener keeps its path. The error is never nil: a
// *[LinkError] if the link died, the cause of ctx if that ended, an error of ln if it can accept no more, or one that matches
// [ErrInvalidOptions].
func Serve(ctx context.Context, ln net.Listener, link io.ReadWriteCloser, opts ...Option) error {
	defer func() { _ = ln.Close() }()
	s, err := newSettings(opts)
	if err != nil {
		_ = link.Close()
		return err
	}
	l := newLink(link, s.log)
	defer l.close()
	select {
	case <-l.ready:
	case <-l.dead:
		return l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p, err := newProxy(s, l)
	if err != nil {
		return err
	}
	return p.run(ctx, ln)
}

func newProxy(s *settings, l *link) (*proxyRun, error) {
	rules := l.hosts.addresses
	rules.DeniedResolvedAddresses = s.ranges
	network, err := policy.NewNetwork(rules)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidOptions, err)
	}
	dialer, err := proxy.NewDialer(proxy.DialerOptions{Network: network, Resolver: s.resolver, Timeout: s.limits.dial, Logger: s.log})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidOptions, err)
	}
	return &proxyRun{
		settings: s, link: l, dialer: dialer, stripped: newStripper(s.strip),
		tunnels: make(chan struct{}, s.limits.tunnels), slots: make(chan struct{}, s.limits.connections),
		long: make(chan struct{}, s.limits.longHeads),
	}, nil
}

// run accepts until the end and sees to its order (PRX-6).
func (p *proxyRun) run(ctx context.Context, ln net.Listener) error {
	var cut, drain context.CancelFunc
	p.ctx, cut = context.WithCancel(context.Background())
	defer cut()
	p.drain, drain = context.WithCancel(context.Background())
	defer drain()
	accepted := make(chan error, 1)
	stop := make(chan struct{})
	p.serving()
	go func() { accepted <- p.accept(ln, stop) }()
	var cause error
	select {
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-p.link.dead:
		cause = p.link.err
	case cause = <-accepted:
		accepted <- cause
	}
	p.link.close()
	close(stop)
	_ = ln.Close()
	p.log.Debug("decider: no more connections are accepted", "error", <-accepted)
	drain()
	ended := make(chan struct{})
	go func() { p.conns.Wait(); close(ended) }()
	timer := time.NewTimer(p.limits.shutdown)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		cut()
		<-ended
	}
	return cause
}

// accept takes connections until ln is closed or fails.
func (p *proxyRun) accept(ln net.Listener, stop <-chan struct{}) error {
	for delay := time.Duration(0); ; {
		select {
		case p.slots <- struct{}{}:
		case <-stop:
			return net.ErrClosed
		}
		conn, err := ln.Accept()
		if err == nil {
			delay = 0
			long := p.takeLong()
			p.conns.Go(func() {
				defer func() { <-p.slots }()
				p.serve(conn, long)
			})
			continue
		}
		<-p.slots
		if !temporary(err) {
			return fmt.Errorf("the listening socket fails: %w", err)
		}
		// Out of descriptors, or a client that left before it was accepted: the listener itself is sound.
		delay = min(max(2*delay, 5*time.Millisecond), time.Second)
		p.log.Debug("decider: accept failed, trying again", "error", err, "delay", delay)
		select {
		case <-time.After(delay):
		case <-stop:
			return net.ErrClosed
		}
	}
}

// temporary reports whether accepting may work again later.
func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}
