package runtime

import (
	"errors"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/runtime/violation"
	"github.com/srt-sandbox/srt/seccomp/broker"
)

// reasonPastProxy is the reason of a refused connection to a destination that the settings allow, or may.
const reasonPastProxy = "not asked of the proxy, which mode confined leaves as the only way out"

// configureConfined adds what the broker needs where it alone stands between the command and the host.
func (p *linuxProcess) configureConfined(config *broker.Config) error {
	l, s := p.launch, p.cmd.sandbox
	capture := s.proxy.NewCapture(nil, p.cmd.Key())
	p.captured = &captureService{capture: capture, done: closedChannel()}
	config.Roots, config.Watched, config.Processes = false, true, nil
	config.Changes = l.view.Judge()
	config.Confined = &broker.ConfinedNet{Proxies: p.proxyAddresses(), LocalBinding: l.cfg.Network.AllowLocalBinding, Made: l.makesSockets(),
		Refused: func(pid int, process string, dst netip.AddrPort) { l.reportPastProxy(capture, pid, process, dst) }}
	config.Unix = broker.UnixRules{All: l.cfg.Network.AllowAllUnixSockets, Allowed: l.socketRules.allowed}
	own, err := ownCapabilities()
	if err != nil {
		return err
	}
	keep := l.keeps() & own
	config.Rights = nil
	if l.host.uid == 0 || keep != 0 {
		if config.Rights, err = l.rights(); err != nil {
			return err
		}
		config.Rights.Effective = keep
	}
	ruleset, listener := p.broker.ruleset, p.broker.listener
	config.NewHand = func() (broker.Hand, error) {
		return ns.StartHand(ns.HandConfig{Process: p.process, Ruleset: ruleset, Listener: listener.File(), Keep: keep})
	}
	return nil
}

// reportPastProxy reports a destination that a program wanted to reach by itself: as everywhere if the settings deny it.
func (l *launch) reportPastProxy(capture *proxy.Capture, pid int, process string, dst netip.AddrPort) {
	if _, err := capture.Judge(pid, dst); err != nil {
		return // it has been reported
	}
	l.cmd.sandbox.report(violation.Event{PID: pid, Process: process, Operation: violation.NetworkOutbound,
		Target: violation.HostPort(dst.Addr().String(), dst.Port()), Reason: reasonPastProxy, CommandID: l.cmd.Key()})
}

// errNoNamespace says why no program in the kernel tells of refusals.
var errNoNamespace = errors.New("mode confined has no user namespace by which the kernel could tell the command's processes from others")

// closedChannel is one that nobody has to wait for.
func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// ownCapabilities are the permitted ones of this process, which are all that a command without a user namespace can keep.
func ownCapabilities() (ns.Capabilities, error) {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return 0, os.NewSyscallError("capget", err)
	}
	return ns.Capabilities(data[0].Permitted) | ns.Capabilities(data[1].Permitted)<<32, nil
}

// checkStreams is chooseStreams where there is no view of the command's own: what a stream leads to is the host's in any case, and
// what can be done by way of its descriptor is judged by where the file lies. A stream of something hidden stays refused (FS-46).
func (l *launch) checkStreams(files [3]*os.File) error {
	for fd, f := range files {
		o, err := inspectStream(fd, int(f.Fd()))
		if err != nil {
			return err
		}
		if err := o.refuseSocket(); err != nil {
			return err
		}
		if l.plan.Unrestricted {
			continue
		}
		if err := o.refuseHidden(l.plan); err != nil {
			return err
		}
		if (o.is(unix.S_IFREG) || o.is(unix.S_IFDIR) || o.is(unix.S_IFIFO)) && o.accessMode() != unix.O_WRONLY && l.plan.Hides(o.path) {
			return &StreamError{streamNames[fd], "is \"" + o.path + "\", which the settings hide. Put a pipe between them (cat file | srt ...), or take it out of what is hidden"}
		}
	}
	return nil
}

// holdConfined has the broker hold a plan, and Landlock what that can. The error says what neither can.
func (l *launch) holdConfined(plan *fsview.Plan) (err error) {
	// The guard is for what the judge of changes leaves: directories that move, and links.
	l.guard, l.hooked = fsview.NewGuard(plan), nil
	l.mechanism = &PlannedMechanism{Name: byBroker, Why: "mode confined: every change of a file is put to srt"}
	l.view, err = l.confine(plan)
	return err
}
