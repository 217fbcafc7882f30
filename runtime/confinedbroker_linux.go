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
	config.Changes, config.Judge = l.changes, confinedPlanted{p.broker.judge, l.changes}
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

// completeConfined adds what is known of a change that was refused: elsewhere the broker refuses names alone, here what is there as
// well, and what the host's own modes keep the user out of.
func (l *launch) completeConfined(e *violation.Event) {
	switch e.Operation {
	case "connect", "bind", "listen":
		return
	}
	access := fsview.AccessWrite
	if fd, err := openCached(e.Target); err == nil {
		unix.Close(fd)
	} else if errors.Is(err, unix.ENOENT) {
		access, e.Creates = fsview.AccessCreate, true
	}
	e.Kind, e.Modes = violation.KindFileWrite, refusedByModes(e.Target, string(e.Operation), access)
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

// holdConfined has the broker hold a plan, and Landlock what that can. The error, a *fsview.ConfineError, says all that neither can.
func (l *launch) holdConfined(in fsview.Input, plan *fsview.Plan) (err error) {
	l.guard, l.hooked = fsview.NewGuard(plan), nil
	l.mechanism = &PlannedMechanism{Name: byBroker, Why: "mode confined: every change of a file is put to srt"}
	l.view, err = fsview.ConfineWithin(plan, fsview.ConfineInput{Tree: fsview.Host(), UID: l.host.uid, ExtraWrite: in.ExtraWrite,
		AllUnixSockets: l.cfg.Network.AllowAllUnixSockets}, 0)
	if err == nil {
		l.changes = l.view.Judge()
	}
	return err
}

// confinedPlanted is what notes the files that a command makes, with the judge of this mode in the place of the plan's guard.
type confinedPlanted struct {
	*plantedJudge
	changes *fsview.ConfinedJudge
}

// Reads implements broker.Judge.
func (j confinedPlanted) Reads() bool { return j.changes.Reads() }

// Open implements broker.Judge.
func (j confinedPlanted) Open(location string) (why string, denied bool) {
	return j.changes.Open(location)
}

// Leave implements broker.Judge.
func (j confinedPlanted) Leave(location string) (why string, denied bool) {
	return j.changes.Leave(location)
}
