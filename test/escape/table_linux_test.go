package escape

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// zero is the signal that only asks whether a process is there.
const zero = syscall.Signal(0)

// process is a line of the process table.
type process struct {
	pid, parent int
	state       string
}

// processTable is every process of the host.
func processTable() map[int]process {
	all := map[int]process{}
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			continue
		}
		text := string(b)
		end := strings.LastIndexByte(text, ')')
		f := strings.Fields(text[end+1:])
		pid, _ := strconv.Atoi(strings.Fields(text)[0])
		parent, _ := strconv.Atoi(f[1])
		all[pid] = process{pid, parent, f[0]}
	}
	return all
}

// descendants are all processes beneath one.
func descendants(root int) []int {
	table := processTable()
	var list []int
	for pid := range table {
		for p := table[pid].parent; p > 0; p = table[p].parent {
			if p == root {
				list = append(list, pid)
				break
			}
		}
	}
	return list
}

// pids are the processes of a sandbox, its pid 1 included.
func (r *running) pids() []int { return descendants(r.cmd.Process.Pid) }

// gone waits until none of these processes runs and returns those that still do in the end. One that has ended and waits
// for the host's init to notice is gone.
func gone(pids []int) []int {
	var left []int
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		left = left[:0]
		table := processTable()
		for _, pid := range pids {
			if p, there := table[pid]; there && p.state != "Z" {
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			return nil
		}
	}
	return left
}

// marked are the processes whose command line holds a text, srt's own included.
func marked(text string) []int {
	var list []int
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err == nil && strings.Contains(string(b), text) {
			pid, _ := strconv.Atoi(strings.Split(n, "/")[2])
			list = append(list, pid)
		}
	}
	return list
}
