package runtime

import (
	"errors"
	"math"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/bpf"
	"github.com/srt-sandbox/srt/fsview"
)

// How much is done for one refused call, once names have changed meanwhile.
const (
	maxResolvedPast = 4096  // paths that are looked up
	maxStepsPast    = 50000 // changes that are looked at
	minStepsPast    = 100   // once a command makes too much of that
	stepsPerSecond  = 500_000
	// nearby is how many changes by other threads, before and after the call returned, may have taken effect on the other side
	// of what it did: a record says when a call returned, not when the kernel looked for its path.
	nearby       = 16
	nearbyWithin = 100 * time.Millisecond
)

// tell reports one refused call, unless the broker or a hook reports it or no rule is behind it: each of its paths that a rule
// is about, once (VIO-10: a rename judges both). It tells whether one was. What is not explained at once is looked at again a
// little later.
func (c *tracedCommand) tell(r bpf.Refused) (refused bool) {
	if c.told.has(r.TID, r.Call, r.Monotonic) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	call := &refusedCall{Refused: r}
	if c.explained(call) {
		return true
	}
	switch {
	case r.Errno == 0:
	case c.work.left < minStepsPast:
		c.decide(call)
	default:
		c.setAside(call)
	}
	return false
}

// pastWork is how much may be done to find out about the past of names: a command can make that any amount of work, and its end
// waits until all of it has been told. What is too much is not told but counted. The zero value is ready.
type pastWork struct {
	left int // of maxWork
	at   time.Duration
}

// maxWork is what may be done at once.
const maxWork = 2 * stepsPerSecond

// begin says how much may be done for one call now.
func (w *pastWork) begin() int {
	now := monotonicNow()
	w.left = min(maxWork, w.left+int((now-w.at).Seconds()*stepsPerSecond))
	w.at = now
	return max(minStepsPast, min(w.left, maxStepsPast))
}

// end says how much has been done.
func (w *pastWork) end(done int) { w.left = max(0, w.left-done) }

// refusedCall is a refused call, and what may still be done to find out where its paths led: a command can make that any amount
// of work.
type refusedCall struct {
	bpf.Refused
	left, steps int
}

// explained reports a call if a rule is behind it, by where its paths led at about the time of it.
func (c *tracedCommand) explained(r *refusedCall) bool {
	steps := c.work.begin()
	r.left, r.steps = maxResolvedPast, steps
	defer func() { c.work.end(steps - r.steps) }()
	in := inside{c.root, nameOf}
	where := in.present(r)
	end := r.History.Settle()
	if end != r.Since {
		where = c.reading(in, r, r.Since, end)
	}
	if c.explain(r, where) {
		return true
	}
	for _, at := range c.overlapping(r, end, where) {
		if c.explain(r, c.reading(in, r, at, end)) {
			return true
		}
	}
	return false
}

// asideFor is how long a call is set aside that is not explained at once: whoever looks for a link may do so in the very moment
// in which the next call takes it away, before the record of that call is written. maxAside is how many there may be.
const (
	asideFor = 50 * time.Millisecond
	maxAside = 4096
)

// setAside keeps a call for a second look. The caller holds mu.
func (c *tracedCommand) setAside(r *refusedCall) {
	if len(c.aside) >= maxAside {
		c.settleFor(c.aside[0])
		c.aside = c.aside[1:]
	}
	c.aside = append(c.aside, r)
	if c.again == nil {
		c.again = time.AfterFunc(asideFor, func() { c.lookAgain(false) })
	}
}

// lookAgain takes the second look at the calls that have been set aside for long enough, or at all of them.
func (c *tracedCommand) lookAgain(all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	done, now := 0, monotonicNow()
	for done < len(c.aside) && (all || now-c.aside[done].Monotonic >= asideFor) {
		c.settleFor(c.aside[done])
		done++
	}
	if c.aside = c.aside[done:]; len(c.aside) > 0 && !all {
		c.again = time.AfterFunc(asideFor, func() { c.lookAgain(false) })
		return
	}
	c.aside, c.again = nil, nil
}

// settleFor takes the last look at a call. What cannot be told is counted as lost: where a path led that is another now, and
// what refuses writing where no rule does. The caller holds mu.
func (c *tracedCommand) settleFor(r *refusedCall) {
	if !c.explained(r) {
		c.decide(r)
	}
}

// decide counts a call that no rule explains, if that may be for want of knowledge. The caller holds mu.
func (c *tracedCommand) decide(r *refusedCall) {
	in := inside{c.root, nameOf}
	steps := c.work.begin()
	r.left, r.steps = maxResolvedPast, steps
	defer func() { c.work.end(steps - r.steps) }()
	where := c.reading(in, r, r.Since, r.History.Settle())
	if where.unknown || !r.History.Known(r.Since) || r.Errno == unix.EROFS && !in.readOnly(where) {
		c.launch.cmd.sandbox.noteLost(1)
	}
}

// reading is where the paths of a call led at some time.
type reading struct {
	paths   []string // without links, as Refused.Paths; then that of Refused.Other
	unknown bool     // not all of it can be told
	visited map[string]struct{}
}

// pathsOf are all paths of a call.
func pathsOf(r *refusedCall) []bpf.TracedPath {
	if r.Other == nil {
		return r.Paths
	}
	return append(r.Paths[:len(r.Paths):len(r.Paths)], *r.Other)
}

// present is where the paths lead now.
func (in inside) present(r *refusedCall) (w reading) {
	for _, p := range pathsOf(r) {
		w.paths = append(w.paths, in.resolve(p))
	}
	return w
}

// reading is where the paths led just before the change at a place.
func (c *tracedCommand) reading(in inside, r *refusedCall, at, end uint64) (w reading) {
	w.visited = map[string]struct{}{}
	for _, p := range pathsOf(r) {
		res := resolution{inside: in, left: r.left, steps: r.steps, visited: w.visited}
		res.past = &past{log: r.History, end: end, now: res.look, names: &c.names}
		found, unknown := p.Dir, false
		if p.Text != "" {
			found, unknown = res.walk(p, at)
		}
		r.left, r.steps = res.left, res.steps
		w.paths, w.unknown = append(w.paths, found), w.unknown || unknown || r.left < 0 || r.steps < 0
	}
	return w
}

// overlapping are the places of changes that other threads made at about the time of a call, of names on its way: it may have
// seen them done, or not yet. Where nothing has changed there is none.
func (c *tracedCommand) overlapping(r *refusedCall, end uint64, w reading) (places []uint64) {
	if r.History == nil || end == 0 {
		return nil
	}
	first, last := r.Since-min(r.Since, nearby), min(end, r.Since+nearby)
	if first == last {
		return nil
	}
	if w.visited == nil {
		w = c.reading(inside{c.root, nameOf}, r, r.Since, end)
	}
	for k := first; k < last; k++ {
		change := r.History.At(k)
		if change.TID == r.TID || change.Kind == bpf.ChangeUnknown || (change.Monotonic-r.Monotonic).Abs() > nearbyWithin {
			continue
		}
		_, old := w.visited[change.Old.LastName()]
		if _, made := w.visited[change.New.LastName()]; !old && !made {
			continue
		}
		if k < r.Since {
			places = append(places, k)
		} else {
			places = append(places, k+1)
		}
	}
	return places
}

// explain reports the paths of a call that a rule is about, and tells whether there is one.
func (c *tracedCommand) explain(r *refusedCall, w reading) (refused bool) {
	l := c.launch
	for i, p := range r.Paths {
		location := w.paths[i]
		if l.hooked.reports(location) {
			refused = true
			continue
		}
		for _, e := range c.effects(location, p.Effects) {
			if l.explainAccess(refusedAccess{at: wallTime(r.Monotonic), pid: r.PID, comm: r.Process, call: r.Call, path: location,
				access: accessOf[e], errno: r.Errno, other: other(w.paths, i)}) {
				refused = true
				break
			}
		}
	}
	if !refused && r.Errno == unix.EXDEV && len(w.paths) == 2 {
		return c.explainApart(r, w)
	}
	return refused
}

// other is the other path of a call with two.
func other(paths []string, i int) string {
	if len(paths) != 2 {
		return ""
	}
	return paths[1-i]
}

// effects are those of a path in the order in which they are to be judged. An open that may create a file changes the one that
// is there.
func (c *tracedCommand) effects(location string, list []bpf.Effect) []bpf.Effect {
	if len(list) != 2 || list[0] != bpf.EffectCreate || list[1] != bpf.EffectChange {
		return list
	}
	r := resolution{inside: inside{c.root, nameOf}, left: 1}
	if _, found := r.look(location); found == seenNothing || found == seenUnknown {
		return list
	}
	return changedFirst
}

var changedFirst = []bpf.Effect{bpf.EffectChange, bpf.EffectCreate}

// explainApart reports a rename or link between two places that are both granted, but by entries of their own, each of which
// is a mount of its own.
func (c *tracedCommand) explainApart(r *refusedCall, w reading) bool {
	from, to := w.paths[0], w.paths[1]
	if r.Other != nil {
		from, to = to, from
	}
	in := inside{c.root, nameOf}
	one, ok := in.device(from)
	two, found := in.device(to)
	if !ok || !found || one != two {
		return false // the host says so as well
	}
	v := c.launch.judge.Between(from, to)
	if !v.Denied {
		return false
	}
	c.launch.reportJudgement(refusedAccess{at: wallTime(r.Monotonic), pid: r.PID, comm: r.Process, call: r.Call, path: to,
		access: fsview.AccessCreate, errno: r.Errno, other: from, apart: true}, v)
	return true
}

// device is the file system that the directory of a location lies on.
func (in inside) device(location string) (uint64, bool) {
	var st unix.Stat_t
	ok := in.askAround(location, func(fd int) error { return unix.Fstat(fd, &st) })
	return st.Dev, ok
}

// readOnly tells whether a path of a call, which no rule denies, lies on a file system that is read-only by itself.
func (in inside) readOnly(w reading) bool {
	for _, p := range w.paths {
		var fs unix.Statfs_t
		if in.askAround(p, func(fd int) error { return unix.Fstatfs(fd, &fs) }) && fs.Flags&unix.ST_RDONLY != 0 {
			return true
		}
	}
	return false
}

// askAround asks about the deepest directory that there is on the way to a location.
func (in inside) askAround(location string, ask func(fd int) error) bool {
	r := resolution{inside: in, left: math.MaxInt}
	for {
		location = path.Dir(location)
		fd, err := r.open(location, unix.O_DIRECTORY, unix.RESOLVE_NO_SYMLINKS)
		switch {
		case err == nil:
			err = ask(fd)
			unix.Close(fd)
			return err == nil
		case location == "/", !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR):
			return false
		}
	}
}

var accessOf = [...]fsview.Access{bpf.EffectRead: fsview.AccessRead, bpf.EffectChange: fsview.AccessWrite,
	bpf.EffectCreate: fsview.AccessCreate, bpf.EffectRemove: fsview.AccessRemove}
