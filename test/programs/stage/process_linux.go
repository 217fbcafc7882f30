package stage

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Processes are the living processes of this stage, by number, with their names: those that carry its mark in their
// environment, and all their descendants. (The first process of a sandbox lets only root read its environment.)
func (s *Stage) Processes() map[int]string {
	mark := []byte(markVariable + "=" + s.mark + "\x00")
	parents, names, found := map[int]int{}, map[int]string{}, map[int]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		stat, err := os.ReadFile(dir + "/stat")
		end := bytes.LastIndexByte(stat, ')')
		fields := strings.Fields(string(stat[end+1:]))
		if err != nil || len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
			continue // gone, or about to be collected by its parent
		}
		if parents[pid], err = strconv.Atoi(fields[1]); err != nil {
			continue
		}
		names[pid] = string(stat[bytes.IndexByte(stat, '(') : end+1])
		if env, err := os.ReadFile(dir + "/environ"); err == nil && bytes.Contains(env, mark) {
			found[pid] = names[pid]
		}
	}
	for grown := true; grown; {
		grown = false
		for pid, parent := range parents {
			if _, have := found[pid]; !have && found[parent] != "" {
				found[pid], grown = names[pid], true
			}
		}
	}
	return found
}

// KillAll ends every process of the stage at once, as a loss of power does: all are stopped first, so that none acts on
// the end of another.
func (s *Stage) KillAll() {
	for range 100 { // a fork between the look and the signal is seen in the next round
		all := s.Processes()
		if len(all) == 0 {
			return
		}
		for _, signal := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
			for pid := range all {
				_ = unix.Kill(pid, signal) // it may have ended by itself
			}
		}
	}
}

// Deserted waits until no process of the stage is left.
func (s *Stage) Deserted() {
	s.T.Helper()
	s.Eventually(func() string {
		if left := s.Processes(); len(left) > 0 {
			return fmt.Sprintf("processes left: %v", slices.Sorted(maps.Values(left)))
		}
		return ""
	})
}

// Eventually waits until a condition of the host gives "", and fails the test with what it says when it never does.
func (s *Stage) Eventually(what func() string) {
	s.T.Helper()
	var last string
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if last = what(); last == "" {
			return
		}
	}
	s.T.Fatalf("still, after a long time: %s", last)
}
