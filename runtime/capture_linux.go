package runtime

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/seccomp"
	"github.com/srt-sandbox/srt/seccomp/broker"
)

// Connections that programs make without asking a proxy (design section 2, "Network"): the broker hears of them, the proxy
// server decides and dials, and a DNS stub tells them names. Where no listener can be had there is none of that: AF_UNIX
// sockets are refused as a whole (NET-81), names do not resolve, and the way out are the proxy variables.

// Where what ns.Program.ListenCapture makes arrives in ns.Process.Files.
const (
	captureIndex = rulesetIndex + 1
	waitingIndex = captureIndex + 1
	dnsUDPIndex  = captureIndex + 2
	dnsTCPIndex  = captureIndex + 3
)

// chooseCapture decides whether connections are captured.
func (l *launch) chooseCapture() {
	if l.uncaptured = noCapture(); l.confines() {
		l.uncaptured = errConfinedNetwork
	}
	if l.uncaptured != nil {
		l.cmd.sandbox.opts.logger.Debug("connections are not captured: programs that ignore the proxy variables reach nothing",
			"why", l.uncaptured.Error())
	}
}

// noCapture tells why connections of programs are not captured, nil if they are: the broker connects a duplicate of the very socket.
func noCapture() error {
	if err := brokerAvailable(); err != nil {
		return err
	}
	return probe.PidfdGetfd.Err()
}

// captured tells whether connections are captured.
func (l *launch) captured() bool { return l.uncaptured == nil }

// brokered tells whether the sandbox has a broker.
func (l *launch) brokered() bool {
	return l.confines() || l.captured() || l.guard.Names() || l.observed()
}

// socketFilters are the filters about connections and Unix sockets. Each is lifted by its own key alone.
func (l *launch) socketFilters() (filters []seccomp.Filter) {
	if !l.cfg.Network.AllowAllUnixSockets {
		if l.captured() {
			filters = append(filters, seccomp.UnixDatagram())
		} else {
			filters = append(filters, seccomp.Unix())
		}
	}
	if l.captured() {
		filters = append(filters, seccomp.Network())
	}
	return filters
}

// resolveSockets turns network.allowUnixSockets into locations.
func (l *launch) resolveSockets(in policy.PathInput) error {
	rules, err := policy.ResolveSockets(l.cfg.Network.AllowUnixSockets, in)
	if err != nil {
		return err
	}
	for i := range rules {
		rules[i].Path = withoutLinks(rules[i].Path)
		l.sockets = append(l.sockets, rules[i].Path)
	}
	l.socketEntries = rules
	return nil
}

// captureService is what captures the connections of one command.
type captureService struct {
	names            *proxy.Names
	capture          *proxy.Capture
	dns              *proxy.DNS
	listener, waiter *os.File
	done             chan struct{}
}

// serveCapture starts the DNS stub and makes what the broker asks.
func (p *linuxProcess) serveCapture() error {
	l, s := p.launch, p.cmd.sandbox
	if !l.captured() {
		return nil
	}
	names, err := proxy.NewNames()
	if err != nil {
		return err
	}
	c := &captureService{names: names, capture: s.proxy.NewCapture(names, p.cmd.Key()), listener: p.takeFile(captureIndex),
		waiter: p.takeFile(waitingIndex), done: make(chan struct{})}
	names.Possible = c.capture.Possible
	p.captured = c
	if c.listener == nil || c.waiter == nil {
		close(c.done)
		return errors.New("the sandbox has sent no listener for captured connections")
	}
	udp, err := packetConn(p.takeFile(dnsUDPIndex))
	if err == nil {
		var tcp net.Listener
		if tcp, err = streamListener(p.takeFile(dnsTCPIndex)); err == nil {
			c.dns = proxy.NewDNS(names, s.opts.logger)
			c.dns.Local, c.dns.LookedUp = s.ownLocalhost, c.capture.LookedUp
			go func() {
				defer close(c.done)
				if err := c.dns.Serve(udp, tcp); err != nil {
					s.opts.logger.Warn("the sandbox's resolver failed; names do not resolve any more", "error", err)
				}
			}()
			return nil
		}
		_ = udp.Close() // nothing was sent
	}
	close(c.done)
	return err
}

// ownLocalhost tells whether a name beneath localhost is the sandbox's own loopback. Those that the settings name are the
// host's (NET-57).
func (s *Sandbox) ownLocalhost(name string) bool {
	return !slices.ContainsFunc(s.current().cfg.Network.AllowedDomains, func(entry string) bool {
		d, err := config.ParseDomain(entry, config.DomainForm{Port: true})
		return err == nil && d.Matches(config.Host{Name: name}, d.Port)
	})
}

// namesOf are the names that a command's resolver has given addresses to, nil if it has none.
func (c *captureService) namesOf() *proxy.Names {
	if c == nil {
		return nil
	}
	return c.names
}

func packetConn(f *os.File) (net.PacketConn, error) {
	if f == nil {
		return nil, errors.New("the sandbox has sent no socket for its resolver")
	}
	defer f.Close()
	return net.FilePacketConn(f)
}

func streamListener(f *os.File) (net.Listener, error) {
	if f == nil {
		return nil, errors.New("the sandbox has sent no listener for its resolver")
	}
	defer f.Close()
	return net.FileListener(f)
}

// close ends the stub and what was captured. The broker has ended before.
func (c *captureService) close() {
	if c == nil {
		return
	}
	if c.dns != nil {
		_ = c.dns.Close() // the sandbox has ended: there is nobody to answer
	}
	<-c.done
	_ = c.capture.Close() // returns at once; what is still on its way out is seen out
	for _, f := range []*os.File{c.listener, c.waiter} {
		if f != nil {
			f.Close()
		}
	}
}

// configure adds what the broker needs for connections.
func (c *captureService) configure(l *launch, config *broker.Config) {
	if c == nil {
		return
	}
	config.Gate = gate{c.capture}
	config.Capture, config.Waiting = c.listener, c.waiter
	config.Unix = broker.UnixRules{All: l.cfg.Network.AllowAllUnixSockets,
		Allowed: l.socketRules.allowed}
}

// gate lets the broker ask the proxy server, which knows nothing of it.
type gate struct{ capture *proxy.Capture }

// Judge implements broker.Gate.
func (g gate) Judge(pid int, dst netip.AddrPort) (broker.Way, error) {
	w, err := g.capture.Judge(pid, dst)
	if err != nil {
		return nil, proxy.Errno(err)
	}
	return way{w}, nil
}

// Loopback implements broker.Gate.
func (g gate) Loopback(dst netip.AddrPort) []netip.AddrPort { return g.capture.Loopback(dst) }

// Datagram implements broker.Gate.
func (g gate) Datagram(pid int, dst netip.AddrPort) { g.capture.Datagram(pid, dst) }

type way struct{ captured *proxy.CapturedWay }

// Dial implements broker.Way.
func (w way) Dial(ctx context.Context) (broker.Upstream, error) {
	u, err := w.captured.Dial(ctx)
	if err != nil {
		return nil, proxy.Errno(err)
	}
	return u, nil
}
