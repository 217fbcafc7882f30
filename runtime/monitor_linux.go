package runtime

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// watching is who tells of what the kernel itself refuses to a command. The proxies and the broker tell of what they refuse
// in any case.
type watching uint8

const (
	watchNothing  watching = iota // nobody was asked to, or nobody can
	watchTraced                   // a program in the kernel (package bpf)
	watchObserved                 // an observer of system calls (seccomp)
)

var watchingNames = [...]string{"nothing", "traced", "observed"}

func (w watching) String() string {
	if int(w) < len(watchingNames) {
		return watchingNames[w]
	}
	return "unknown"
}

// monitored is the part of a launch that is about refusals of the kernel. The zero value is a launch that is not watched.
type monitored struct {
	watch watching
	// unwatched says why nothing is told although it was asked for.
	unwatched error
	judge     *fsview.Judge  // nil unless watched
	traced    *tracedCommand // nil unless it is armed
	looks     hostLooks
}

// chooseMonitor chooses who tells of refusals, where the session asks for them: a program in the kernel where this process
// may load one, for it costs the command next to nothing and sees what really was refused; else the observer. It is called
// once the plan is made.
func (l *launch) chooseMonitor() {
	s := l.cmd.sandbox
	if s.opts.monitor == MonitorOff {
		return
	}
	noTracer := s.tracing.available(l.dry)
	if l.confines() {
		noTracer = errNoNamespace
	}
	if noTracer == nil {
		l.watch = watchTraced
	} else if noListener := brokerAvailable(); noListener == nil {
		l.watch = watchObserved
	} else {
		l.watchNothing(errors.Join(noTracer, noListener))
		return
	}
	if noTracer == nil {
		s.opts.logger.Debug("what the kernel refuses is told by a program in the kernel")
	} else {
		s.opts.logger.Debug("what the kernel refuses is told by an observer of system calls, which is slower", "because", noTracer)
	}
	l.judge = fsview.NewJudge(l.plan)
}

// watchNothing notes why nobody tells what the kernel refuses, and says so once in a session.
func (l *launch) watchNothing(reason error) {
	l.watch, l.unwatched = watchNothing, reason
	if l.dry {
		return
	}
	if l.cmd.sandbox.tracing.warned.Swap(true) {
		return
	}
	l.cmd.sandbox.opts.warn(fmt.Sprintf("What the kernel refuses to commands is not reported; the proxies still report what they refuse. "+
		"Why: %v. Run srt as root, or where it may install a seccomp listener, or without asking for such reports.", reason))
}

// refusedAccess is one path of a system call that failed: absolute, without "." and "..", and without symbolic links as far as
// they are followed. pid is the host's number, comm the process's name, call that of the system call.
type refusedAccess struct {
	at         time.Time // zero: now
	pid        int
	comm, call string
	path       string
	access     fsview.Access
	errno      syscall.Errno // 0: it succeeded on what stands in for the object
	other      string        // the other path of a call with two; empty if there is none
	apart      bool          // each of the two is allowed, and only the way between them is not
}

// explainAccess tells of a system call if the command's plan explains its error, and whether it does.
func (l *launch) explainAccess(r refusedAccess) bool {
	v := l.judge.Judge(r.path, r.access)
	if !v.Explains(r.errno) && !(r.errno == 0 && v.Denied && v.Substitute) {
		return false
	}
	return l.reportJudgement(r, v)
}

// reportJudgement reports what the plan denies, unless it is nothing to a person, and whether it did: what is missing with
// and without the sandbox, what is the sandbox's own and not a rule of the settings, and a mask that was read.
func (l *launch) reportJudgement(r refusedAccess, v fsview.Judgement) (told bool) {
	if v.Rule == fsview.RuleSSHConfigDir && r.access == fsview.AccessRead || v.Masked || l.looks.missingAnyway(r, &v) {
		return false
	}
	l.cmd.sandbox.report(violation.Event{Time: r.at, PID: r.pid, Process: r.comm, Operation: violation.Operation(r.call), Target: r.path,
		Kind: kindOfAccess(r.access), Creates: r.access == fsview.AccessCreate, Other: r.other, Apart: r.apart, Rule: v.Rule, Entry: v.Entry,
		Modes: refusedByModes(r.path, r.call, r.access), CommandID: l.cmd.Key()})
	return true
}

// kindOfAccess is the kind of a violation: whether reading or writing would have to be allowed.
func kindOfAccess(a fsview.Access) violation.Kind {
	if a == fsview.AccessRead {
		return violation.KindFileRead
	}
	return violation.KindFileWrite
}
