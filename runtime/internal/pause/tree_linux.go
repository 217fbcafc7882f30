package pause

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// process is what proc_pid_stat(5) says of a process.
type process struct {
	pid, parent, group int
	started            uint64 // in clock ticks since boot: with the number, who it is
	depth              int    // below the root
}

// errStat says that the kernel's account of a process is not understood.
var errStat = errors.New("a line of /proc/PID/stat is not understood")

// parseStat reads a stat line: the state and the process. The name in it may hold anything, so what counts begins after
// the last parenthesis.
func parseStat(line []byte) (state byte, p process, err error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return 0, p, errStat
	}
	// From the third on: state ppid pgrp session ... The 22nd is the start time.
	f := bytes.Fields(line[end+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return 0, p, errStat
	}
	var errs [4]error
	p.pid, errs[0] = strconv.Atoi(string(bytes.TrimSpace(line[:open])))
	p.parent, errs[1] = strconv.Atoi(string(f[1]))
	p.group, errs[2] = strconv.Atoi(string(f[2]))
	p.started, errs[3] = strconv.ParseUint(string(f[19]), 10, 64)
	if err := errors.Join(errs[:]...); err != nil {
		return 0, process{}, fmt.Errorf("%w: %w", errStat, err)
	}
	return f[0][0], p, nil
}

func readProcess(pid int) (process, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) //nolint:gosec // a number
	if err != nil {
		return process{}, err
	}
	_, p, err := parseStat(line)
	return p, err
}

// gone tells whether an error of a file below /proc says that its process is not there. Every other error, of too many
// open files above all, says nothing about it.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// hidden tells whether an error says that a process is there and hidden (proc(5), hidepid).
func hidden(err error) bool { return errors.Is(err, fs.ErrPermission) }

// descendants are all processes below one, every parent before its children. Whose number is the same before and after
// was there all the time. It fails if some may be hidden.
func (i Identity) descendants() ([]process, error) {
	if now, err := Identify(i.pid); err != nil || now != i {
		return nil, ErrEnded
	}
	list, err := descendants(i.pid)
	if err == nil {
		err = i.allShown(list)
	}
	if now, err := Identify(i.pid); err != nil || now != i {
		return nil, ErrEnded
	}
	return list, err
}

// descendants are all processes below whoever has a number, as far as they are shown.
func descendants(root int) ([]process, error) {
	entries, err := numbers("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]process{}
	for _, pid := range entries {
		p, err := readProcess(pid)
		switch {
		case err == nil:
			children[p.parent] = append(children[p.parent], p)
		case !gone(err) && !hidden(err):
			return nil, err
		}
	}
	var list []process
	add := func(parent, depth int) {
		for _, c := range children[parent] {
			c.depth = depth
			list = append(list, c)
		}
		delete(children, parent) // numbers change hands while they are read: no circle
	}
	add(root, 1)
	for i := 0; i < len(list); i++ {
		add(list[i].pid, list[i].depth+1)
	}
	return list, nil
}

// allShown fails if this /proc hides processes (proc(5), hidepid) and one of these has a child that is not among them.
// That can be one of the same user: it has executed a file that the user must not read.
func (i Identity) allShown(list []process) error {
	if _, err := readProcess(1); err == nil {
		return nil // it hides nothing from the caller
	}
	shown := make(map[int]bool, len(list))
	for _, p := range list {
		shown[p.pid] = true
	}
	for _, p := range append([]process{{pid: i.pid}}, list...) {
		threads, err := numbers(fmt.Sprintf("/proc/%d/task", p.pid))
		if err != nil && !gone(err) {
			return err
		}
		for _, tid := range threads {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.pid, tid))
			if _, there := os.Stat(fmt.Sprintf("/proc/%d/task/%d", p.pid, tid)); err != nil && there == nil {
				return fmt.Errorf("%w: %w", ErrHidden, err) // a kernel without CONFIG_PROC_CHILDREN
			}
			for field := range strings.FieldsSeq(string(text)) {
				if child, err := strconv.Atoi(field); err != nil || !shown[child] {
					return fmt.Errorf("%w: the child %s of process %d", ErrHidden, field, p.pid)
				}
			}
		}
	}
	return nil
}

// numbers are the entries of a directory that are numbers.
func numbers(dir string) (list []int, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			list = append(list, n)
		}
	}
	return list, err
}

// How a process stands, from the states of its threads.
const (
	standing = iota // every thread is stopped, or has ended
	waiting         // some are in a call that no signal interrupts
	running
)

// standings are the states of a thread (proc_pid_stat(5)) that are not running.
var standings = [...]struct {
	state byte
	means int
}{{'T', standing}, {'t', standing}, {'Z', standing}, {'X', standing}, {'x', standing}, {'D', waiting}}

func standingOf(state byte) int {
	for _, s := range standings {
		if s.state == state {
			return s.means
		}
	}
	return running
}

// stateOf looks at every thread: what is first among them may have ended while others run.
func stateOf(pid int) int {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := numbers(dir)
	switch {
	case gone(err):
		return standing
	case err != nil:
		return running // nobody knows
	}
	worst := standing
	for _, tid := range threads {
		line, err := os.ReadFile(fmt.Sprintf("%s/%d/stat", dir, tid))
		if gone(err) {
			continue
		}
		state, _, err := parseStat(line)
		if err != nil {
			return running // nobody knows
		}
		worst = max(worst, standingOf(state))
	}
	return worst
}

// ChildNotStopped tells whether a child of a process that is pid 1 of a pid namespace is seen not to be stopped: it runs, or
// it has ended, as it has where the process itself has. inner is the child's number in there. Where nobody can see, it is
// false.
func (i Identity) ChildNotStopped(inner int) bool {
	list, err := i.descendants()
	if err != nil {
		return errors.Is(err, ErrEnded)
	}
	levels := len(numbersWithin(i.pid))
	for _, p := range list {
		within := numbersWithin(p.pid)
		if p.depth == 1 && len(within) == levels && levels > 0 && within[levels-1] == strconv.Itoa(inner) {
			return stateOf(p.pid) != standing || hasEnded(p.pid)
		}
	}
	return levels > 0
}

// hasEnded tells whether no thread of a process is left.
func hasEnded(pid int) bool {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := numbers(dir)
	if err != nil {
		return gone(err)
	}
	for _, tid := range threads {
		line, err := os.ReadFile(fmt.Sprintf("%s/%d/stat", dir, tid))
		if gone(err) {
			continue
		}
		if state, _, err := parseStat(line); err != nil || !strings.ContainsRune("ZXx", rune(state)) {
			return false
		}
	}
	return true
}

// numbersWithin are the numbers of a process in the pid namespaces that it is in (NSpid in proc_pid_status(5)), the outermost
// first; none if it is not there.
func numbersWithin(pid int) []string { return numbersIn(fmt.Sprintf("/proc/%d/status", pid)) }

// procElsewhere tells whether the first of this process's numbers in /proc is not its own one, or cannot be told.
var procElsewhere = sync.OnceValue(func() bool { return len(numbersIn("/proc/self/status")) != 1 })

func numbersIn(status string) []string {
	text, err := os.ReadFile(status)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "NSpid:"); ok {
			return strings.Fields(list)
		}
	}
	return nil
}
