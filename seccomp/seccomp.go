package seccomp

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/srt-sandbox/srt/seccomp/internal/rules"
)

// ErrUnsupportedArch says that there are no filters for the architecture this binary was built for.
var ErrUnsupportedArch = errors.New("no system call filters for this architecture")

// Supported returns nil if this binary carries filters, else an error that wraps [ErrUnsupportedArch]. Without filters
// no command may run (NET-84).
func Supported() error {
	for _, f := range all() {
		if f.program == "" {
			return fmt.Errorf("%w: this srt is built for %s; use a build for amd64 or arm64", ErrUnsupportedArch, runtime.GOARCH)
		}
	}
	return nil
}

// Filter is one system call filter for the architecture this binary was built for. It is an immutable value, safe for
// use by any number of goroutines. The zero value has no program and cannot be loaded.
type Filter struct {
	// Name is "base", "namespaces", "unix", "unix-datagram", "ioctl-names", "names", "opens", "network",
	// "observe-writes", "observe-all", "confined-sockets", "confined-network",
	// "made-sockets", "changes" or "confined"; Stack joins names with " + ".
	Name string

	program  string
	notifies bool
}

// all lists every filter, in the order of internal/rules.
func all() [15]Filter {
	return [15]Filter{Base(), Namespaces(), Unix(), UnixDatagram(), IoctlNames(), Names(), Opens(), Network(),
		ObserveWrites(), ObserveAll(), ConfinedSockets(), ConfinedNetwork(), MadeSockets(),
		Changes(), Confined()}
}

// Program returns a copy of the filter: an array of struct sock_filter (seccomp(2), 8 bytes each, the machine's byte
// order), whose length is a multiple of 8. It goes to seccomp(SECCOMP_SET_MODE_FILTER) under no_new_privs (NET-84).
// It is empty exactly if [Supported] returns an error.
func (f Filter) Program() []byte { return []byte(f.program) }

// Notifies says whether the filter puts calls to the process that holds its listener (SECCOMP_RET_USER_NOTIF). Such a
// filter is loaded with SECCOMP_FILTER_FLAG_NEW_LISTENER: without a listener those calls fail with ENOSYS. The kernel
// takes one listener for each process, so all that notify are joined by [Stack] first.
func (f Filter) Notifies() bool { return f.notifies }

// Base returns the filter of every sandbox: the rules that no setting lifts.
func Base() Filter { return Filter{Name: "base", program: baseProgram} }

// Namespaces returns the filter that keeps a command from making namespaces and mounts (NET-83). Only
// allowNestedUserNamespaces lifts it.
func Namespaces() Filter { return Filter{Name: "namespaces", program: namespacesProgram} }

// Unix returns the filter that refuses every new AF_UNIX and AF_VSOCK socket, stream and seqpacket socket pairs
// excepted (NET-81). It is for sandboxes in which no broker judges connect. Only allowAllUnixSockets lifts it.
func Unix() Filter { return Filter{Name: "unix", program: unixProgram} }

// UnixDatagram returns the filter that takes the place of [Unix] where a broker judges every connect: it refuses only
// the AF_UNIX sockets that can send without one, and AF_VSOCK. Only allowAllUnixSockets lifts it.
func UnixDatagram() Filter { return Filter{Name: "unix-datagram", program: unixDatagramProgram} }

// IoctlNames returns the filter for sandboxes in which the kernel refuses denied names that do not exist by hooks (FS-30): it
// refuses the requests of ioctl that make a name past every hook. [Names] and [Opens] refuse them as well.
func IoctlNames() Filter { return Filter{Name: "ioctl-names", program: ioctlNamesProgram} }

// Names returns the filter for sandboxes with denied names that do not exist (FS-30, FS-33, FS-55): it puts every call
// that can make a name to the listener, whose holder performs it, and every call that changes the umask, ids, groups or
// capabilities of a thread, which the holder lets go on. It takes the last place in [Stack].
func Names() Filter { return Filter{Name: "names", program: namesProgram, notifies: true} }

// Opens returns the filter that takes the place of [Names] where reads are denied that no mount can hide (FS-10, FS-55):
// beside what Names says it puts every open to the listener.
func Opens() Filter { return Filter{Name: "opens", program: opensProgram, notifies: true} }

// Network returns the filter for sandboxes whose programs reach the allowed hosts by their own connect: it puts connect, bind,
// getpeername and the question for SO_ERROR to the listener, whose holder performs them on a duplicate of the caller's
// socket, and refuses what would connect without a connect (MSG_FASTOPEN). It joins with [Names] or [Opens] in [Stack].
func Network() Filter { return Filter{Name: "network", program: networkProgram, notifies: true} }

// ObserveWrites returns the filter for sandboxes whose refused writes are reported where nothing else can tell of them (VIO-10):
// it puts every call that changes a file, its attributes or a name to the listener, whose holder looks and lets it go on. It
// joins with the others that notify in [Stack]; a call that one of those is about is performed as that one says.
func ObserveWrites() Filter {
	return Filter{Name: "observe-writes", program: observeWritesProgram, notifies: true}
}

// ObserveAll returns the filter that takes the place of [ObserveWrites] where refused reads are reported, too: it also puts
// every opening, the execution of programs, the reading of links and the change of the working directory to the listener.
func ObserveAll() Filter {
	return Filter{Name: "observe-all", program: observeAllProgram, notifies: true}
}

// ConfinedSockets returns the filter for sandboxes without a network namespace (mode confined): it refuses every socket that
// could send without a connect that a broker judges, but AF_UNIX, which is the business of [Unix] and [UnixDatagram], and the
// socket options that lead packets elsewhere than their address says.
func ConfinedSockets() Filter {
	return Filter{Name: "confined-sockets", program: confinedSocketsProgram}
}

// ConfinedNetwork returns the filter that goes with [ConfinedSockets]: it puts connect, bind and listen to the listener, whose
// holder performs them on a duplicate of the caller's socket, and refuses what connects without a connect (MSG_FASTOPEN).
func ConfinedNetwork() Filter {
	return Filter{Name: "confined-network", program: confinedNetworkProgram, notifies: true}
}

// MadeSockets returns the filter that goes with [ConfinedNetwork] where the kernel gives no copies of another process's
// descriptors (pidfd_getfd(2)): it puts socket to the listener, whose holder makes it. It stands behind [ConfinedSockets] in
// [Stack], so that only sockets that may be made come to the holder.
func MadeSockets() Filter {
	return Filter{Name: "made-sockets", program: madeSocketsProgram, notifies: true}
}

// Changes returns the filter for sandboxes without mounts of their own (mode confined): it takes the place of [Names] and puts
// every call that changes a file, an attribute or a name to the listener, whose holder judges and performs it, and every call
// that acts upon another process by its number. Openings to read are not put, but for openat2. It takes the last place in [Stack].
func Changes() Filter { return Filter{Name: "changes", program: changesProgram, notifies: true} }

// Confined returns the filter for sandboxes without namespaces (mode confined), which refuses the IPC of the host's. It goes
// with [Changes].
func Confined() Filter { return Filter{Name: "confined", program: confinedProgram} }

// Rule is one line of the table that the filters are generated from, as text for people.
type Rule struct {
	Filter    string // name of the filter
	Syscall   string // name of the system call, or what stands for many of them
	Condition string // which calls the rule is for; empty: all
	// Action is an errno ("EPERM", "ENOSYS", "EPROTONOSUPPORT", "EOPNOTSUPP", "EAFNOSUPPORT"), "SIGSYS" for the death of the process, or
	// "notify" for a call that srt judges and performs in the command's place, or takes note of and lets go on (Why says so).
	Action string
	Why    string // one line
}

// Rules returns the rules of every filter, of all architectures together, in the order of the filters. Each filter
// allows what none of its rules names.
func Rules() []Rule {
	var out []Rule
	for _, f := range rules.Filters() {
		out = append(out, Rule{f.Name, "any", "of another architecture, or of the x32 ABI", "SIGSYS",
			"its number means another call than the rules say"})
		if f.RefuseUnknown {
			out = append(out, Rule{f.Name, "any", "newer than Linux 6.18", rules.ENOSYS.String(),
				"nobody has judged it yet; programs fall back to older calls"})
		}
		for _, j := range f.Judged {
			for _, r := range j.Refusals() {
				action := r.Errno.String()
				if r.Ask {
					action = "notify"
				}
				out = append(out, Rule{f.Name, j.Call.Name, r.Text, action, r.Why})
			}
		}
		for _, r := range f.Rules {
			text := r.Text
			if r.Only != "" {
				text = join(text, string(r.Only)+" only")
			}
			action := r.Errno.String()
			if r.Notify {
				action = "notify"
			}
			out = append(out, Rule{f.Name, r.Call, text, action, r.Why})
		}
	}
	return out
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
