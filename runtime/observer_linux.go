package runtime

import (
	"slices"

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
	var judge broker.PathJudge = l.judge
	if l.confines() {
		judge = plainJudge{judge: l.judge}
	}
	return &broker.Observation{Judge: judge, Reads: l.cmd.sandbox.opts.monitor == MonitorAll, Only: !l.guard.Names()}
}

// plainJudge is the judge where nothing stands in for what is hidden: there are no mounts (mode confined).
type plainJudge struct{ judge *fsview.Judge }

// Judge implements broker.PathJudge.
func (j plainJudge) Judge(path string, a fsview.Access) fsview.Judgement {
	v := j.judge.Judge(path, a)
	v.Substitute = false
	return v
}

// passesConfined lists the calls that look at what is hidden and that Landlock does not refuse (docs/modes.md).
var passesConfined = []string{"chdir", "readlink", "readlinkat"}

// reportObserved turns what the observer saw into an event, unless a hook in the kernel reports it.
func (l *launch) reportObserved(d broker.Denial) {
	if d.Access == fsview.AccessCreate && l.hooked.reports(d.Path) {
		return
	}
	if l.confines() && d.Access == fsview.AccessRead && slices.Contains(passesConfined, d.Call) {
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
