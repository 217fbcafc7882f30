// Package rules states what the seccomp filters refuse, as data.
//
// What belongs here: the tables and their types. What does not: turning a table into BPF (internal/generate) and the
// public view of it (package seccomp). The package has no dependencies and no initialisation, because the start path
// of the binary links it.
package rules

import "slices"

// Arch is an architecture that the filters exist for, under its Go name.
type Arch string

// The architectures that filters are generated for.
const (
	AMD64 Arch = "amd64"
	ARM64 Arch = "arm64"
)

// Arches lists every architecture in the order of generation.
func Arches() []Arch { return []Arch{AMD64, ARM64} }

// Errno is an error number of Linux. The few that filters answer with are the same on every architecture here.
type Errno uint16

// The answers that filters give.
const (
	EPERM           Errno = 1
	ENOSYS          Errno = 38
	EPROTONOSUPPORT Errno = 93
	EOPNOTSUPP      Errno = 95
	EAFNOSUPPORT    Errno = 97
)

// Errnos lists them, ascending.
func Errnos() []Errno { return []Errno{EPERM, ENOSYS, EPROTONOSUPPORT, EOPNOTSUPP, EAFNOSUPPORT} }

// String returns the symbolic name.
func (e Errno) String() string {
	switch e {
	case EPERM:
		return "EPERM"
	case ENOSYS:
		return "ENOSYS"
	case EPROTONOSUPPORT:
		return "EPROTONOSUPPORT"
	case EOPNOTSUPP:
		return "EOPNOTSUPP"
	case EAFNOSUPPORT:
		return "EAFNOSUPPORT"
	}
	return "unnamed errno"
}

// low32 is the mask of an argument that the kernel takes as a 32-bit integer. Comparing all 64 bits would let a caller
// pass the rule by setting a bit that the kernel then drops (CVE-2019-10063, CVE-2019-9893).
const low32 = 0xffffffff

// Cond holds when argument Index (from 0), and-ed with Mask, equals Value.
type Cond struct {
	Index uint8
	Mask  uint64
	Value uint64
}

// Rule refuses one system call, or puts it to the listener. Without When it applies always; with When, if every
// condition holds.
type Rule struct {
	Call  string // name as in section 2 of the manual
	When  []Cond
	Text  string // When, for people
	Errno Errno  // the answer; 0 with Notify
	// Notify asks the process that holds the filter's listener (SECCOMP_RET_USER_NOTIF) in place of an errno. Where
	// there is no listener the kernel answers ENOSYS.
	Notify bool
	Only   Arch // the one architecture that has the call; empty: all
	// Number is the system call's number, on every architecture, if libseccomp 2.5.4 does not know its name; else 0.
	Number uint32
	Why    string
}

// Judged is a system call that is decided by several arguments, one after the other. libseccomp takes one comparison for
// each argument and rule, and none that says "in no list", so it cannot express this.
type Judged struct {
	Call NumberedCall
	By   *Choice
}

// Choice looks at one argument, and decides or has the next one looked at.
type Choice struct {
	Index uint8  // of the argument, from 0, above those that were looked at before
	Mask  uint32 // what counts of its low half
	Name  string // of the argument, for people
	Cases []Case // by value, ascending
	// Otherwise is the answer to any other value, 0 only with Ask.
	Otherwise Errno
	// Ask puts any other value to the listener, as Rule.Notify does.
	Ask bool
	Why string
}

// Case is one value of a Choice: with Next the following argument decides, with Errno the call is refused, else allowed.
type Case struct {
	Value uint32
	Name  string // for people
	Next  *Choice
	Errno Errno
	Why   string // with Errno
}

// Refusal is one way in which a Judged call is refused, or put to the listener.
type Refusal struct {
	Text  string // when, for people
	Errno Errno
	Ask   bool // it is put to the listener instead
	Why   string
}

// Refusals lists them, in the order of the arguments and values.
func (j Judged) Refusals() []Refusal { return j.By.refusals("") }

// refusals lists those of a choice that is reached under the condition of before.
func (c *Choice) refusals(before string) (all []Refusal) {
	other := before + c.Name + " other than "
	for i, v := range c.Cases {
		if i > 0 {
			other += ", "
		}
		other += v.Name
		is := before + c.Name + " = " + v.Name
		switch {
		case v.Next != nil:
			all = append(all, v.Next.refusals(is+", ")...)
		case v.Errno != 0:
			all = append(all, Refusal{Text: is, Errno: v.Errno, Why: v.Why})
		}
	}
	return append(all, Refusal{other, c.Otherwise, c.Ask, c.Why})
}

// NumberedCall is a system call with its number on each architecture.
type NumberedCall struct {
	Name         string
	AMD64, ARM64 uint32
}

// Number returns the number of the call on a.
func (c NumberedCall) Number(a Arch) uint32 {
	if a == ARM64 {
		return c.ARM64
	}
	return c.AMD64
}

// Range is a closed range of system call numbers.
type Range struct{ First, Last uint32 }

// Filter is one filter: its own architecture check, then its rules, then allow.
type Filter struct {
	Name  string
	Rules []Rule
	// Judged is decided before the rules, none of which may name the same calls.
	Judged []Judged
	// RefuseUnknown answers every number outside Known with ENOSYS.
	RefuseUnknown bool
}

// Notifies says whether any rule of f needs a listener.
func (f Filter) Notifies() bool {
	for _, r := range f.Rules {
		if r.Notify {
			return true
		}
	}
	return slices.ContainsFunc(f.Judged, func(j Judged) bool { return j.By.asks() })
}

// asks says whether anything is put to the listener by c, or by what it leads to.
func (c *Choice) asks() bool {
	return c.Ask || slices.ContainsFunc(c.Cases, func(v Case) bool { return v.Next != nil && v.Next.asks() })
}

// Filters lists every filter in the order of generation and of [github.com/srt-sandbox/srt/seccomp.Rules].
func Filters() []Filter {
	return []Filter{base, namespaces, unix(), unixDatagram(), ioctlNames(), names(), opens(), network(), observeWrites(), observeAll(),
		confinedSockets(), confinedNetwork(), madeSockets(), changesFilter(), confined()}
}
