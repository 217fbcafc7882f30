package pause

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
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
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	_, p, err := parseStat(line)
	return p, err
}

// descendants are all processes below one, as far as they are visible. Whose number is the same before and after was there
// all the time.
func (i Identity) descendants() ([]process, error) {
	if now, err := Identify(i.pid); err != nil || now != i {
		return nil, ErrEnded
	}
	list, err := descendants(i.pid)
	if now, err := Identify(i.pid); err != nil || now != i {
		return nil, ErrEnded
	}
	return list, err
}

// descendants are all processes below whoever has a number.
func descendants(root int) ([]process, error) {
	entries, err := numbers("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]process{}
	for _, pid := range entries {
		if p, err := readProcess(pid); err == nil { // else it has ended
			children[p.parent] = append(children[p.parent], p)
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

// stateOf looks at every thread: what is first among them may have ended while others run.
func stateOf(pid int) int {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := numbers(dir)
	if err != nil {
		return standing // it has ended
	}
	worst := standing
	for _, tid := range threads {
		line, err := os.ReadFile(fmt.Sprintf("%s/%d/stat", dir, tid))
		if err != nil {
			continue // it has ended
		}
		state, _, err := parseStat(line)
		switch {
		case err != nil:
			return running // nobody knows
		case bytes.IndexByte([]byte("TtZXx"), state) >= 0:
		case state == 'D':
			worst = max(worst, waiting)
		default:
			return running
		}
	}
	return worst
}
