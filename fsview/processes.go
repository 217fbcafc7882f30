package fsview

import (
	"strconv"
	"strings"
)

// Where the sandbox shows the surrounding /proc (CompileOptions.HostProc), processes that are not of the sandbox have directories
// there. Nothing in them is opened for a command (Guard.Process), as if they were not there: what a fresh /proc would hide stays
// hidden. Their numbers are seen in the listing of /proc.

// Process judges the opening of anything about a process, in /proc, that is of the sandbox (own) or not.
func (g *Guard) Process(own bool) (denied bool) { return g != nil && g.processes && !own }

// Processes reports whether Process ever refuses anything.
func (g *Guard) Processes() bool { return g != nil && g.processes }

// ProcessOf is the number of the process, or thread, that a path is about, relative to the root of a procfs: 12 for "12",
// "12/status" and "12/task/13/stat". What is of no process has none. A path of the kernel's may end in " (deleted)".
func ProcessOf(path string) (number int, ok bool) {
	first, _, _ := strings.Cut(path, "/")
	n, err := strconv.ParseUint(strings.TrimSuffix(first, " (deleted)"), 10, 31)
	return int(n), err == nil
}
