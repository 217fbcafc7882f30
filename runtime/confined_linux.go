package runtime

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/seccomp"
)

// Mode confined: no namespaces and no mounts (docs/modes.md). What holds a command are three Landlock domains, filters, and the
// broker, which performs every change of a file and every connect of it.
//
//	              full                                     confined
//	files         mounts, Landlock                         Landlock for reading; the broker, and Landlock for its hands, for changes
//	processes     a pid namespace                          a Landlock scope of signals, and two processes that end the rest (package ns)
//	network       a namespace; connections are captured    the proxies listen on the host's loopback; the broker lets connect there
//	IPC           a namespace                              refused
//
// Whatever the settings ask for that this cannot hold is an error of the start.

// errConfinedNetwork says why no connections are captured in this mode.
var errConfinedNetwork = errors.New("mode confined has no network namespace: programs reach the proxies, by the proxy variables, and nothing else")

// confinedNote is what the log of a session says once. It is no warning, which the command line would print: the settings allow the
// mode by name, srt check and srt explain tell it, and the output of srt exec is the command's alone.
const confinedNote = "no namespaces can be had here, so commands run in mode confined: what it does not hide of the host, such as names and " +
	"attributes of files and the list of processes, is in docs/modes.md"

// confines tells whether the launch is in mode confined.
func (a *attempt) confines() bool { return a.mode == ModeConfined }

// beginConfined starts the command without namespaces.
func (p *linuxProcess) beginConfined() error {
	if err := p.cmd.limitCores(); err != nil {
		return err
	}
	h, err := readIdentity()
	if err != nil {
		return err
	}
	p.cmd.sandbox.opts.timing("identities read")
	abi, err := landlockABI()
	if err != nil {
		return err
	}
	p.session = p.cmd.prepared.chooseSession(p.files[0], p.files[1], abi)
	if err := p.listenConfined(); err != nil {
		return err
	}
	program, err := ns.NewProgram()
	if err != nil {
		return err
	}
	if err := p.planConfined(h, program); err != nil {
		return errors.Join(err, program.Release())
	}
	if err := p.cmd.endedEarly(); err != nil { // asked as late as the command can still be kept from existing (CLI-14, LIB-17)
		return errors.Join(err, program.Release())
	}
	prepared, err := ns.Prepare(&ns.Config{Confined: true, Session: p.session, Stdin: p.files[0], Stdout: p.files[1], Stderr: p.files[2]}, program)
	if err != nil {
		return errors.Join(err, program.Release())
	}
	p.cmd.sandbox.opts.timing("namespaces made") // none; it is the moment that counts
	if err := prepared.AllowHands(); err != nil {
		return errors.Join(err, prepared.Close())
	}
	stop := context.AfterFunc(p.cmd.ctx, func() { _ = prepared.Kill() }) // a step that hangs is cut short, too
	p.process, err = prepared.Start(&ns.Command{Candidates: p.launch.candidates, Args: p.cmd.Args, Env: p.launch.env,
		Null: p.cmd.sandbox.opts.nullDescriptor})
	stop()
	if err != nil {
		return err
	}
	p.cmd.sandbox.opts.timing("program done")
	p.process.OnStop = p.commandStopped
	if err = p.serveBroker(); err == nil {
		p.serveListeners()
		return nil
	}
	_ = p.process.Kill()
	_, _ = p.process.Wait() // says that it was killed
	return err
}

// listenConfined opens the listener of the command's proxies on the host's loopback. Nobody without the session's token is served
// there (NET-18). It accepts both protocols, so that one does for both.
func (p *linuxProcess) listenConfined() error {
	n := &p.cmd.sandbox.begun.Network
	p.how.ports = [2]int{external(n, httpPort), external(n, socksPort)}
	if p.how.ports[0] != 0 && p.how.ports[1] != 0 {
		return nil // both are proxies of the host's (NET-64)
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("make a listener for the command's proxies on the host's loopback: %w", err)
	}
	for i, port := range p.how.ports {
		if port == 0 {
			p.how.ports[i] = ln.Addr().(*net.TCPAddr).Port
		}
	}
	p.listeners = append(p.listeners, ln)
	// Programs that look up localhost may try this one first. Where it cannot be had they find nothing there and try the other.
	if ln, err := net.Listen("tcp6", netip.AddrPortFrom(netip.IPv6Loopback(), uint16(ln.Addr().(*net.TCPAddr).Port)).String()); err == nil {
		p.listeners = append(p.listeners, ln)
	}
	return nil
}

// serveListeners hands the listener to the session's proxies.
func (p *linuxProcess) serveListeners() {
	for _, ln := range p.listeners {
		p.serveOn(func() error { return p.cmd.sandbox.proxy.ServeFor(ln, p.cmd.Key(), nil) })
	}
}

// planConfined compiles the settings and writes the program.
func (p *linuxProcess) planConfined(h host, program *ns.Program) error {
	l, err := p.cmd.prepare(h, p.how)
	if err != nil {
		return err
	}
	p.launch = l // what it holds is given back by release
	if s := p.cmd.sandbox; !s.tracing.confined.Swap(true) {
		s.opts.logger.Info(confinedNote)
	}
	if err := l.checkStreams(p.files); err != nil {
		return err
	}
	p.cmd.sandbox.opts.timing("files planned")
	err = l.writeConfined(program)
	p.cmd.sandbox.opts.timing(fmt.Sprintf("program of %d steps written", program.Len()))
	return err
}

// writeConfined writes the launch program.
func (l *launch) writeConfined(p *ns.Program) error {
	opts := fsview.CompileOptions{LandlockABI: l.host.landlockABI, TTYGroup: true, Lacks: l.host.lacks}
	hand, command := l.view.CompileLandlock(p, opts)
	p.Chdir(l.plan.Dir)
	p.NewKeyring()
	p.Undumpable()
	if err := p.ConfineCapabilities(l.keeps()); err != nil {
		return err
	}
	p.RestrictCommand(command)
	for _, f := range seccomp.Stack(l.filters...) {
		if !f.Notifies() {
			p.Filter(f.Name, f.Program())
			continue
		}
		listener := p.FilterWithListener(f.Name, f.Program())
		p.SendFiles(listenerIndex, "the listener", listener, hand) // at listenerIndex and rulesetIndex
		p.Close(listener)
	}
	return nil
}

// chooseConfinedFilters stacks the filters. No setting lifts the refusal of namespaces, nor that of other sockets: there is nothing
// else that would hold what is made with them.
func (l *launch) chooseConfinedFilters() {
	l.filters = []seccomp.Filter{seccomp.Base(), seccomp.Namespaces(), seccomp.Confined()}
	if !l.cfg.Network.AllowAllUnixSockets {
		l.filters = append(l.filters, seccomp.UnixDatagram())
	}
	l.filters = append(l.filters, seccomp.ConfinedSockets())
	if l.makesSockets() {
		l.filters = append(l.filters, seccomp.MadeSockets())
	}
	l.filters = append(l.filters, seccomp.ConfinedNetwork(), seccomp.Changes())
	if l.changes.Reads() {
		l.filters = append(l.filters, seccomp.Opens())
	}
	l.chooseObserver()
}

// makesSockets tells whether the broker makes the command's sockets, because it can take no copies of them.
func (l *launch) makesSockets() bool { return !probe.PidfdGetfd.Probe().Present() }

// proxyPorts are the ports of the proxies as the command reaches them.
func (l *launch) proxyPorts() (http, socks int) {
	if l.confines() && l.ports[0] != 0 {
		return l.ports[0], l.ports[1]
	}
	return httpPort, socksPort
}

// proxyAddresses are where the command may connect to: its own proxies, and those of the host's that serve it in their place.
func (p *linuxProcess) proxyAddresses() (list []netip.AddrPort) {
	for _, ln := range p.listeners {
		list = append(list, ln.Addr().(*net.TCPAddr).AddrPort())
	}
	n := &p.cmd.sandbox.begun.Network
	for _, port := range []int{httpPort, socksPort} {
		if port := external(n, port); port != 0 {
			list = append(list, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)),
				netip.AddrPortFrom(netip.IPv6Loopback(), uint16(port)))
		}
	}
	return list
}
