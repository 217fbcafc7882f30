package ns

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Namespaces is a set of CLONE_NEW* flags (namespaces(7)).
type Namespaces uintptr

// Full is every kind of namespace that a sandbox has. The cgroup namespace is left out where the kernel has none.
const Full = Namespaces(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP)

// Session says what the command is to its terminal (CLI-10, docs/architecture.md).
type Session uint8

const (
	// SessionNew gives the command a session of its own without a controlling terminal. It is the zero value.
	SessionNew Session = iota
	// SessionForeground keeps the caller's session; the command is a process group of its own, in the foreground.
	SessionForeground
	// SessionShared keeps the caller's session and process group, as in a shell's pipeline.
	SessionShared
	// SessionTerminal gives the command a session of its own, whose controlling terminal is its standard input. That must be
	// a terminal that no session has.
	SessionTerminal
)

// IDMap is one line of uid_map or gid_map (user_namespaces(7)).
type IDMap struct{ Inside, Outside, Count uint32 }

// Config is what the new process is made with.
type Config struct {
	// Namespaces the process is the first of. CLONE_NEWPID and CLONE_NEWUSER are required, unless Confined.
	Namespaces Namespaces
	// Confined makes a sandbox without namespaces and identity maps, held by Landlock and filters alone: its program calls
	// ConfineCapabilities and RestrictCommand. In the place of a pid namespace there are two processes that end all that
	// descends from the command (confined_linux.go). Landlock ABI 6 (Linux 6.12) is required: Start fails without it.
	Confined bool
	// UIDs and GIDs are the identity maps of the new user namespace. With DenySetgroups, setgroups(2) is refused
	// for good; without the right to map groups that is the condition for any map at all.
	UIDs, GIDs    []IDMap
	DenySetgroups bool
	// Session is the command's place on the terminal.
	Session Session
	// Stdin, Stdout and Stderr become descriptors 0, 1 and 2. They stay the caller's to close. None may be nil.
	Stdin, Stdout, Stderr *os.File
}

// Command is what the new process becomes once its program is done.
type Command struct {
	// Candidates are the paths tried in order, as execvp(3) would, within the file system that the program leaves behind.
	Candidates []string
	// Args and Env are the command's, Args[0] included. No NUL bytes.
	Args, Env []string
	// Hold are descriptors, 16 at most, of which pid 1 keeps copies until it ends, and the command gets none: what they are
	// for, a lock for example, lasts as long as the sandbox, whatever becomes of the host side. They stay the caller's to
	// close, once Start has returned. pid 1 closes its copies no earlier than the last other process of the sandbox has
	// ended, unless it is killed itself.
	Hold []*os.File
	// Null is a descriptor number, 3 or more, at which the command finds the host's /dev/null, opened for reading; 0 is
	// for none. It stands in for a descriptor of the caller's that the command must not have (CLI-30).
	Null int
}

// Status is how a command ended.
type Status struct {
	// Code is the exit status: 0 to 255, 128+n for a command that signal n ended.
	Code int
}

// Signal is the host's name for a signal number.
type Signal = syscall.Signal
