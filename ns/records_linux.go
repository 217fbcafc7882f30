package ns

import (
	"bytes"
	"os"
	"strconv"
	_ "unsafe" // for go:linkname
)

// Beside its heap a Go program has the runtime's records of it, and others' anonymous memory. A forked process needs none of these
// either, and they cost most of what copying is left: the program writes to them all the time, so that after each fork it
// faults once for every page of them that it then writes.
//
// Where C code is linked in nothing of this is left out, since what belongs to C cannot be told, and C may fork as well.

// hasC tells whether C code is linked in, or something that stands in for it. The runtime promises not to change it
// (golang.org/issue/67401).
//
//go:linkname hasC runtime.iscgo
var hasC bool

// region is an address range.
type region struct{ start, end uintptr }

// records are what has been found of such memory. What is new is copied until the next look; where something else has taken a place,
// it is left out in its stead, which harms nothing but a program's own memory (goHeap.leaveOut).
type records struct {
	forks   int // so far
	regions []region
}

// lookAgainAfter is after how many forks the regions are looked up at the latest.
const lookAgainAfter = 256

// renew looks for the regions, at times that become rarer. A program that forks once does not pay for it.
func (r *records) renew() {
	r.forks++
	if n := r.forks; hasC || n == 1 || (n%lookAgainAfter != 0 && n&(n-1) != 0) {
		return
	}
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		r.regions = nil // a matter of cost
		return
	}
	r.regions = anonymous(r.regions[:0], text)
}

// anonymous appends the memory that is private, may be read and written, and is of neither a file nor the kernel's own, as a text
// of proc_pid_maps(5) has it. What borders on a file's belongs to it: variables that begin as zero.
func anonymous(list []region, text []byte) []region {
	var border uintptr // where a file's last mapping ends
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) < 5 {
			return list[:0] // nothing that is known
		}
		from, to, _ := bytes.Cut(f[0], []byte("-"))
		start, err1 := strconv.ParseUint(string(from), 16, 64)
		end, err2 := strconv.ParseUint(string(to), 16, 64)
		switch {
		case err1 != nil || err2 != nil:
			return list[:0]
		case string(f[4]) != "0" || uintptr(start) == border:
			border = uintptr(end)
		case string(f[1]) != "rw-p":
		case len(f) == 5 || bytes.HasPrefix(f[5], []byte("[anon:")): // the runtime gives its memory names (PR_SET_VMA_ANON_NAME(2const))
			list = append(list, region{uintptr(start), uintptr(end)})
		}
	}
	return list
}
