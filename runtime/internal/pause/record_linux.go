package pause

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"
)

// A stopped process goes on at a SIGCONT, and that need not come from a process that runs: timers (timer_create(2)), the
// owner of a descriptor (fcntl(2), F_SETSIG), the end of a parent (PR_SET_PDEATHSIG) or of a child (clone(2), the signal of
// its end) send what they were told to before. No filter can tell them all by their arguments. So it is noticed instead:
// a thread that has run has been taken from a processor since, which the kernel counts.
//
// What could make a thread look as before:
//
//   - It stops again: the number of its context switches has grown.
//   - Another thread of the process executes a program, and so takes the number and the start time of the first, and the
//     counts of its own: the faults of the whole process have grown (the new program's memory is new), and to the
//     nanosecond it has run for another time.
//   - It ends, and another one gets its number: that one has started in a later tick, because a record takes two looks that
//     are ticks apart.
//
// New processes and threads need no look for themselves: they were made by one that ran. They get one all the same.

// ErrRan is returned for descendants that were stopped and have not stood still.
var ErrRan = errors.New("a process that was stopped ran meanwhile")

const (
	// apart is the time between two looks that must agree: more than a tick of the start times (proc_pid_stat(5), USER_HZ is
	// 100), and far more than a thread needs from being stopped, as the first look may see it, to being counted as switched.
	apart = 25 * time.Millisecond
	// briefly is that of the looks that follow, of which the second only has to see what the first may have met in the middle.
	briefly = 2 * time.Millisecond
	// patient is for how long threads in calls that no signal interrupts are waited for. What srt's own broker has in hand ends
	// much sooner.
	patient = 300 * time.Millisecond
)

// record is how all descendants that have not ended stand, by their numbers.
type record map[int]account

// account is one process.
type account struct {
	started uint64
	faults  string // of the whole process, threads that have ended included
	threads map[int]trace
}

// trace is what a thread leaves behind when it runs.
type trace struct {
	state    byte
	started  uint64
	switches string // voluntary and other context switches
	ran      string // nanoseconds, and how often; empty on kernels that do not count that (CONFIG_SCHED_INFO)
}

func (a account) equal(b account) bool {
	return a.started == b.started && a.faults == b.faults && maps.Equal(a.threads, b.threads)
}

// stands tells how the worst of all threads stands.
func (r record) stands() int {
	worst := standing
	for _, a := range r {
		for _, t := range a.threads {
			worst = max(worst, standingOf(t.state))
		}
	}
	return worst
}

// difference names a process that is not in both in the same way; 0 if there is none.
func (r record) difference(now record) (pid int) {
	for pid, a := range r {
		if b, ok := now[pid]; !ok || !a.equal(b) {
			return pid
		}
	}
	for pid := range now {
		if _, ok := r[pid]; !ok {
			return pid
		}
	}
	return 0
}

// look makes a record of what is below a process now.
func (i Identity) look() (record, error) {
	list, err := i.descendants()
	if err != nil {
		return nil, err
	}
	r := record{}
	for _, p := range list {
		a, err := readAccount(p)
		switch {
		case gone(err) || err == nil && len(a.threads) == 0: // it has ended; who collects it is not stopped
		case err != nil:
			return nil, err
		default:
			r[p.pid] = a
		}
	}
	return r, nil
}

// readAccount looks at one process. One without threads that have not ended has none in its account.
func readAccount(p process) (account, error) {
	dir := fmt.Sprintf("/proc/%d", p.pid)
	line, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return account{}, err
	}
	a := account{started: p.started, threads: map[int]trace{}}
	if a.faults, err = faultsOf(line); err != nil {
		return account{}, err
	}
	threads, err := numbers(dir + "/task")
	if err != nil {
		return account{}, err
	}
	ended := true
	for _, tid := range threads {
		t, err := readTrace(fmt.Sprintf("%s/task/%d", dir, tid))
		if gone(err) {
			continue
		}
		if err != nil {
			return account{}, err
		}
		a.threads[tid] = t
		ended = ended && bytes.IndexByte([]byte("ZXx"), t.state) >= 0
	}
	if ended {
		clear(a.threads)
	}
	return a, nil
}

// readTrace looks at one thread.
func readTrace(dir string) (t trace, err error) {
	line, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return t, err
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return t, err
	}
	ran, err := os.ReadFile(dir + "/schedstat")
	if err != nil && !gone(err) {
		return t, err
	}
	var p process
	if t.state, p, err = parseStat(line); err != nil {
		return t, err
	}
	t.started, t.ran = p.started, string(ran)
	if t.switches, err = switchesOf(status); err != nil {
		return t, err
	}
	return t, nil
}

// faultsOf are the counts of page faults in a stat line, those of children that were waited for included.
func faultsOf(line []byte) (string, error) {
	if _, _, err := parseStat(line); err != nil {
		return "", err
	}
	f := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	return string(bytes.Join(f[7:11], []byte(" "))), nil
}

// errStatus says that the kernel's account of a thread is not understood.
var errStatus = errors.New("the context switches are not in /proc/PID/task/TID/status")

// switchesOf are the counts of context switches in a status file (proc_pid_status(5)). The name in it, which the process
// chooses, has its line breaks escaped.
func switchesOf(status []byte) (string, error) {
	var counts []string
	for line := range strings.Lines(string(status)) {
		if name, count, ok := strings.Cut(line, ":"); ok && strings.HasSuffix(name, "voluntary_ctxt_switches") {
			counts = append(counts, strings.TrimSpace(count))
		}
	}
	if len(counts) != 2 {
		return "", errStatus
	}
	return strings.Join(counts, " "), nil
}

// remember makes the record that StoodStill compares with: two looks that agree. It is false if they do not.
func (p *Paused) remember() (agreed bool, err error) {
	first, err := p.root.look()
	if err != nil || first.stands() == running {
		return false, err
	}
	time.Sleep(apart) //nolint:forbidigo // what happens in this time is what is looked for
	second, err := p.root.look()
	if err != nil || first.difference(second) != 0 {
		return false, err
	}
	p.before = second
	return true, nil
}

// StoodStill tells whether all descendants have stood still since Below has returned. The error matches ErrRan if one has
// run, if only in the kernel, or has ended, however it stands now; ErrEnded if the root has ended; others are of /proc.
// It must not be called at the same time as Resume.
func (p *Paused) StoodStill() error {
	for range 2 {
		now, err := p.root.look()
		if err != nil {
			return err
		}
		if pid := p.before.difference(now); pid != 0 {
			return fmt.Errorf("%w: process %d", ErrRan, pid)
		}
		time.Sleep(briefly) //nolint:forbidigo // a thread that stops again is counted as switched a moment later
	}
	return nil
}
