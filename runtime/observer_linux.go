package runtime

import (
	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/seccomp"
	"github.com/srt-sandbox/srt/seccomp/broker"
)

// The observer: where no program in the kernel can tell what that refuses, the filter puts the calls that can be refused to the
// broker, which has a listener anyhow (a process takes one), and which looks at each and lets it go on. It decides nothing.

// observed tells whether an observer tells what the kernel refuses.
func (l *launch) observed() bool { return l.watch == watchObserved }

// chooseObserver adds the filter of the observer, last: what another one refuses is nothing that the kernel refuses.
func (l *launch) chooseObserver() {
	switch {
	case !l.observed():
	case l.cmd.sandbox.opts.monitor == MonitorAll:
		l.filters = append(l.filters, seccomp.ObserveAll())
	default:
		l.filters = append(l.filters, seccomp.ObserveWrites())
	}
}

// observation is what the broker looks at, nil for nothing.
func (l *launch) observation() *broker.Observation {
	if !l.observed() {
		return nil
	}
	return &broker.Observation{Judge: l.judge, Reads: l.cmd.sandbox.opts.monitor == MonitorAll, Only: !l.guard.Names()}
}

// reportObserved turns what the observer saw into an event, unless a hook in the kernel reports it.
func (l *launch) reportObserved(d broker.Denial) {
	if d.Access == fsview.AccessCreate && l.hooked.reports(d.Path) {
		return
	}
	r := refusedAccess{pid: d.PID, comm: d.Process, call: d.Call, path: d.Path, access: d.Access, other: d.Other, apart: d.Apart}
	v := l.judge.Judge(d.Path, d.Access)
	if d.Apart {
		v = l.judge.Between(d.Other, d.Path)
	}
	if v.Denied {
		l.reportJudgement(r, v)
	}
}

// countUnobserved notes the calls of which the observer could not tell whether they were refused, and the reports that were
// left out because too many waited.
func (l *launch) countUnobserved(s *broker.Server) {
	if !l.observed() {
		return
	}
	session := l.cmd.sandbox
	if n := s.Unobserved(); n > 0 {
		session.opts.logger.Warn("whether these system calls of the command were refused is not known: the memory of its processes could not "+
			"be read, or where a path leads took too long to find out", "calls", n)
		session.store.NoteLost(n)
	}
	session.noteLost(s.Dropped())
}
