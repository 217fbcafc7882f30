package runtime

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
	"github.com/srt-sandbox/srt/seccomp"
	"github.com/srt-sandbox/srt/seccomp/broker"
	"github.com/srt-sandbox/srt/seccomp/notify"
)

// Where what the broker works with arrives in ns.Process.Files, after the standard streams.
const (
	listenerIndex = streamIndex + 3
	rulesetIndex  = listenerIndex + 1
)

// brokerAvailable tells whether a sandbox started from here can have a broker. It does not change while this process
// loads no filter.
var brokerAvailable = func() error {
	err := probe.Notify.Err()
	if said, ok := errors.AsType[*notify.UnavailableError](err); ok {
		return said // whole sentences, with what to do
	}
	return err
}

// writeFilters appends the filters. With a broker, its listener and the ruleset for its hands go to the host side.
func (l *launch) writeFilters(p *ns.Program, ruleset ns.Slot) {
	fsview.CompileRestrict(p, ruleset)
	for _, f := range seccomp.Stack(l.filters...) {
		if !f.Notifies() {
			p.Filter(f.Name, f.Program())
			continue
		}
		listener := p.FilterWithListener(f.Name, f.Program())
		files := []ns.Slot{listener} // at listenerIndex and rulesetIndex
		if ruleset != 0 {
			files = append(files, ruleset)
		}
		p.SendFiles(listenerIndex, "the listener", files...)
		p.Close(listener)
	}
}

// takeFile takes a descriptor that the launch program sent, nil if it sent none.
func (p *linuxProcess) takeFile(index int) *os.File {
	if index >= len(p.process.Files) {
		return nil
	}
	f := p.process.Files[index]
	p.process.Files[index] = nil
	return f
}

// serveBroker answers the calls that the filter puts to srt, until the sandbox ends.
func (p *linuxProcess) serveBroker() error {
	l := p.launch
	if !l.brokered() {
		return nil
	}
	b := &brokerService{launch: l, ruleset: p.takeFile(rulesetIndex), done: make(chan struct{})}
	p.broker = b
	guard := l.guard
	if guard == nil { // mounts, or hooks in the kernel, hold the rules about files
		guard = fsview.NewGuard(&fsview.Plan{})
	}
	b.judge = &plantedJudge{Guard: guard, except: append(deniedPaths(l.plan), l.tmp), names: map[string]plantedBefore{}}
	file := p.takeFile(listenerIndex)
	if file == nil {
		return errors.New("the sandbox has sent no listener for its system calls")
	}
	var err error
	if b.listener, err = notify.New(file); err != nil {
		return errors.Join(err, file.Close())
	}
	config := broker.Config{
		Listener: b.listener, Judge: b.judge, Roots: l.cfg.AllowNestedUserNamespaces, Init: p.process.Pid(), Processes: l.guard, Watched: l.guard.Names(), Report: l.reportDenial, Refusing: l.refusing(),
		NewHand: func() (broker.Hand, error) {
			return ns.StartHand(ns.HandConfig{Process: p.process, Ruleset: b.ruleset, Unrestricted: b.ruleset == nil,
				Listener: b.listener.File(), Keep: l.keeps()})
		},
	}
	config.Observe = l.observation()
	p.captured.configure(l, &config)
	if l.host.mapsAll {
		if config.Rights, err = l.rights(); err != nil {
			return err
		}
	}
	if l.confines() {
		if err := p.configureConfined(&config); err != nil {
			return err
		}
	}
	if b.server, err = broker.New(config); err != nil {
		return err
	}
	go func() {
		defer close(b.done)
		if err := b.server.Serve(); err != nil {
			l.cmd.sandbox.opts.logger.Warn("the listener for system calls failed; the command is ended", "error", err)
			_ = p.process.Kill() // it would wait for answers for ever
		}
	}()
	return nil
}

// keeps are the capabilities that the command and the broker's hands keep.
func (l *launch) keeps() ns.Capabilities {
	switch {
	case l.host.uid == 0 && l.cfg.AllowNestedUserNamespaces:
		// Who makes a user namespace that has an id 0 maps its own to it, or all, with this alone (user_namespaces(7)).
		return rootKeeps | ns.CapabilitySet(unix.CAP_SETFCAP)
	case l.host.uid == 0:
		return rootKeeps
	}
	return 0
}

// rights are those of a new hand: srt's own, as the sandbox numbers them, which maps every id to itself.
func (l *launch) rights() (*ns.Identity, error) {
	groups, err := os.Getgroups()
	if err != nil {
		return nil, fmt.Errorf("ask for the supplementary groups: %w", err)
	}
	id := &ns.Identity{UID: uint32(l.host.uid), GID: uint32(l.host.gid), Effective: l.keeps()}
	for _, g := range groups {
		id.Groups = append(id.Groups, uint32(g))
	}
	return id, nil
}

// nscdSocket is what glibc asks in every process that looks up a name or an account, before it does so by itself: that it is
// refused, as any socket of the host, costs the command nothing and is no news.
const nscdSocket = "/run/nscd/socket"

// reportDenial turns what the broker refused into an event, and what failed in it into a line for the person: a call of
// the command failed without a rule.
func (l *launch) reportDenial(d broker.Denial) {
	s := l.cmd.sandbox
	if d.Err != nil {
		s.opts.logger.Warn("a system call could not be performed for the command and failed", "call", d.Call, "path", d.Path,
			"pid", d.PID, "error", d.Err)
		return
	}
	if d.Observed {
		l.reportObserved(d)
		return
	}
	if d.Call == "connect" && d.Path == nscdSocket {
		return
	}
	rule := violation.RuleOf(d.Why)
	if rule == policy.RuleUnixSockets { // an entry that names it is not enough everywhere
		if listed := policy.SocketRule(l.socketEntries, d.Path); listed != nil {
			rule = listed.Key
		}
	}
	e := violation.Event{PID: d.PID, Process: d.Process, Operation: violation.Operation(d.Call), Target: d.Path, Rule: rule, Entry: entryAt(l.cfg, rule),
		CommandID: l.cmd.Key()}
	if l.confines() {
		l.completeConfined(&e)
	}
	s.report(e)
}

// brokerService is the broker of one command and what it works with.
type brokerService struct {
	launch   *launch
	listener *notify.Listener
	ruleset  *os.File
	judge    *plantedJudge
	server   *broker.Server
	done     chan struct{}
}

// close ends the broker and waits until no thread or hand of it is left.
func (b *brokerService) close() {
	if b == nil {
		return
	}
	if b.server != nil {
		_ = b.server.Close() // the sandbox has ended: there is nobody to answer
		<-b.done
		b.launch.countUnobserved(b.server)
	}
	if b.listener != nil {
		_ = b.listener.Close() // nothing was written to it
	}
	if b.ruleset != nil {
		b.ruleset.Close()
	}
}

// planted is what the person is told of what the command made, or empty. What does not fit into it is logged.
func (b *brokerService) planted() string {
	if b == nil {
		return ""
	}
	line, all := b.judge.line()
	for _, p := range all {
		b.launch.cmd.sandbox.opts.logger.Debug("the command made or changed a file that other programs act upon by themselves", "path", p)
	}
	return line
}
