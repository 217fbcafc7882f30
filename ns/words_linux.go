package ns

import (
	"bytes"
	"os"
	"strconv"
)

// The arguments and the environment of a program lie at the top of its first stack, as execve(2) has put them there, and all
// strings that os.Environ gives point to it. A forked process has no use for them either, and its sandbox must not have them:
// variables that are denied to a command or masked for it would be in pid 1's memory, and behind its /proc/PID/environ
// (CRED-35). So the pages that hold them are left out of the copy as well.

// words is where they are.
type words struct {
	region
	searched bool
}

// The fields of a process's statistics that tell (proc_pid_stat(5)): the address of the arguments, the end of the environment.
const (
	statArgStart = 48
	statEnvEnd   = 51
)

// find looks them up, the first time. They never move.
func (w *words) find() {
	if w.searched {
		return
	}
	w.searched = true
	if text, err := os.ReadFile("/proc/self/stat"); err == nil {
		w.region = wordsIn(text)
	}
}

// wordsIn is the whole pages in which a text of proc_pid_stat(5) has the arguments and the environment; empty where it does not
// tell.
func wordsIn(text []byte) region {
	// The second field is the program's name, with whatever is in that.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const before = 3 // the number of the first of these fields
	if len(fields) <= statEnvEnd-before {
		return region{}
	}
	start, err1 := strconv.ParseUint(string(fields[statArgStart-before]), 10, 64)
	end, err2 := strconv.ParseUint(string(fields[statEnvEnd-before]), 10, 64)
	if err1 != nil || err2 != nil || start == 0 || end <= start {
		return region{}
	}
	page := uintptr(os.Getpagesize())
	return region{uintptr(start) &^ (page - 1), (uintptr(end) + page - 1) &^ (page - 1)}
}
