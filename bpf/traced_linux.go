package bpf

import (
	"syscall"
	"time"
)

// Effect is what a system call would have done with a path.
type Effect uint8

// The effects. The zero value is the least.
const (
	EffectRead   Effect = iota // open for reading, execute, read a link, change the working directory
	EffectChange               // content, mode, owner, times or attributes of what exists
	EffectCreate               // make the name
	EffectRemove               // take the name away
)

// TracedPath is one path of a refused call. Both strings are what the caller's memory and the directories said when the
// call returned, and so fit for a report and for nothing else.
type TracedPath struct {
	// Dir is where the path begins, absolute in the mount namespace of the caller: its root directory, its working directory,
	// or the directory of a descriptor. For a call about a descriptor alone it is that file.
	Dir string
	// Text is the path as the caller spelled it: empty for a call about a descriptor. Links in it are not resolved.
	Text string
	// Effects are what the call may have been refused for, the likeliest first; never empty.
	Effects []Effect
	// Follow says that a symbolic link in the place of the last name is followed.
	Follow bool
}

// Refused is one system call that a process of a sandbox made in vain, for whatever reason: the kernel does not tell a rule
// of the sandbox from a lack of rights. It is a value that nothing changes.
type Refused struct {
	// Call is the name of the system call.
	Call string
	// Errno is its error; 0 where it succeeded on something that stands in for what is hidden: root may open the empty file
	// that stands for a hidden one, and everybody the empty directory.
	Errno syscall.Errno
	// Paths are one or two: of a rename the old one first, of a link the new one alone.
	Paths []TracedPath
	// Other is the path of a link that names what exists already, about which nothing is asked: it has no Effects. Nil for
	// every other call.
	Other *TracedPath
	// PID and TID are the process and the thread in the numbers of this process's pid namespace.
	PID, TID int
	// Process is the thread's own name for itself: 15 bytes at most, and not to be trusted.
	Process string
	// Monotonic is when it returned (CLOCK_MONOTONIC), to be compared with other such times.
	Monotonic time.Duration
	// History is what the sandbox changed about names, and Since its place there: what comes from it on happened after the
	// call returned, while its paths still said something else. History is nil in what did not come from a Trace.
	History *History
	Since   uint64
}

// ChangeKind is what a call did to a name.
type ChangeKind uint8

// The kinds of change. The zero value is one of which nothing is known: it may have been any, and several.
const (
	ChangeUnknown ChangeKind = iota
	ChangeGone               // Old is taken away
	ChangeLink               // New is a symbolic link that says Target
	ChangeMove               // Old is called New, in whose place something may have been
	ChangeSwap               // Old and New have changed places
	ChangeName               // New is a further name of Old; that may have been a symbolic link
)

// Change is one change of a name by a process of a sandbox. It is a value that nothing changes. As with a Refused, its paths
// are fit for a report and for nothing else; the last name in each is not followed, and Effects are empty.
type Change struct {
	Kind     ChangeKind
	Old, New TracedPath
	Target   string
	// Directory says that what is gone was a directory.
	Directory bool
	// TID and Monotonic are the thread and the time, as in a Refused.
	TID       int
	Monotonic time.Duration
}

// TraceOptions say what is to be told of a sandbox. The zero value is refused writing alone.
type TraceOptions struct {
	// Reads: calls that change nothing count too.
	Reads bool
	// Hides: the sandbox hides something of the host's. What is not there (ENOENT) and what stands in for it count too.
	Hides bool
}
