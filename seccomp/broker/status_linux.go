package broker

import (
	"bytes"
	"errors"
	"strconv"
)

// status is what proc_pid_status(5) says of a thread and what matters to a call: its umask, whose rights it acts with,
// its numbers within the sandbox, and its signals.
type status struct {
	umask            uint32
	uids, gids       [4]uint32 // real, effective, saved, and of file access
	groups           []uint32
	effective        uint64
	permitted        uint64
	tgid             int
	threads          int
	inner            int // the process as the sandbox's own pid namespace numbers it; 0 if it is in none
	innerThread      int // the thread
	pending, shared  uint64
	blocked, ignored uint64
}

// errStatus says that the kernel's account of a thread is not understood.
var errStatus = errors.New("a line of /proc/PID/status is missing or not understood")

// fields are the lines that are read, each of which must be there.
const fields = 14

// parseStatus reads the text of a status file. It keeps nothing of text.
func parseStatus(text []byte) (s status, err error) {
	seen := 0
	for len(text) > 0 && seen < fields {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		key, value, _ := bytes.Cut(line, []byte{':'})
		known, ok := s.line(string(key), bytes.TrimSpace(value))
		if !ok {
			return s, errStatus
		}
		if known {
			seen++
		}
	}
	if seen < fields {
		return s, errStatus
	}
	return s, nil
}

// line reads one line and tells whether it is one that matters, and understood.
func (s *status) line(key string, value []byte) (known, ok bool) {
	switch key {
	case "Umask":
		return true, number(value, 8, &s.umask)
	case "Tgid":
		return true, number(value, 10, &s.tgid)
	case "Uid":
		return true, four(value, &s.uids)
	case "Gid":
		return true, four(value, &s.gids)
	case "Groups":
		return true, s.readGroups(value)
	case "NStgid":
		return true, second(value, &s.inner)
	case "NSpid":
		return true, second(value, &s.innerThread)
	case "Threads":
		return true, number(value, 10, &s.threads)
	case "SigPnd":
		return true, number(value, 16, &s.pending)
	case "ShdPnd":
		return true, number(value, 16, &s.shared)
	case "SigBlk":
		return true, number(value, 16, &s.blocked)
	case "SigIgn":
		return true, number(value, 16, &s.ignored)
	case "CapPrm":
		return true, number(value, 16, &s.permitted)
	case "CapEff":
		return true, number(value, 16, &s.effective)
	}
	return false, true
}

func number[T ~int | ~uint32 | ~uint64](text []byte, base int, dst *T) bool {
	n, err := strconv.ParseUint(string(text), base, 64)
	*dst = T(n)
	return err == nil && *dst >= 0 && uint64(*dst) == n
}

func four(text []byte, dst *[4]uint32) bool {
	f := bytes.Fields(text)
	if len(f) != len(dst) {
		return false
	}
	for i := range f {
		if !number(f[i], 10, &dst[i]) {
			return false
		}
	}
	return true
}

func (s *status) readGroups(text []byte) bool {
	for _, word := range bytes.Fields(text) {
		var g uint32
		if !number(word, 10, &g) {
			return false
		}
		s.groups = append(s.groups, g)
	}
	return true
}

// second reads the second of a list of numbers, which goes from the reader's pid namespace inwards.
func second(text []byte, dst *int) bool {
	f := bytes.Fields(text)
	switch {
	case len(f) == 0 || !number(f[0], 10, dst):
		return false
	case len(f) == 1:
		*dst = 0
		return true
	}
	return number(f[1], 10, dst)
}

// interrupted tells whether a signal waits that would end a blocking call of the thread, and whether that is sure to be
// this thread's: one for the whole group may be taken by another (signal(7)).
func (s *status) interrupted() (yes, sure bool) {
	deliverable := ^(s.blocked | s.ignored)
	if s.pending&deliverable != 0 {
		return true, true
	}
	return s.shared&deliverable != 0, s.threads == 1
}
