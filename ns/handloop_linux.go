package ns

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What runs in a hand: the hand-over of its descriptors and the loop that takes one program after another. The
// restrictions at the top of child_linux.go hold here too, for as long as the hand lives.

// Places of a hand's descriptors, beside HandListener, HandFDs and ctlFD. lifelineFD has one of its own for good; those
// from firstFree on are for the set-up program alone, and closed after it.
const (
	lifelineFD   = 2
	rulesetFD    = firstFree
	namespacesFD = rulesetFD + 1
	handFDs      = namespacesFD + len(namespaceFiles)
	// handScratch is above all of them.
	handScratch = 32
)

// handState is all that the loop needs, in memory that is shared with the host side. The host side writes runs, each only
// while the hand has nothing more to do with it; the rest is the hand's after the start.
type handState struct {
	runs    [2]handRun
	streams [handFDs]uintptr // as numbered in the host process
	scratch [handFDs]uintptr
	msg     [4]uint32
	parcel
	self handSelf
}

// handRun is one program to run.
type handRun struct {
	script
	passed uintptr // how many descriptors come with the program
	acts   uintptr // not 0: the program may have changed whose rights it acts with
	word   uint32  // whether the host side is told of the end
}

// Values of handRun.word. A program is begun as told or silent; Program.Answering makes silent answered, and then the end is
// not told.
const (
	told = iota
	silent
	answered
)

// handSelf is the hand's own identity.
type handSelf struct {
	uid, gid  uint32
	setgroups uintptr // not 0: it has the right to change its groups
	groups    uintptr // address of the list
	ngroups   uintptr
	capHead   capHeader
	capData   [2]capData
}

// handMain is the first function of a hand. It does not return.
//
//go:norace
//go:nosplit
func handMain(c *handState) {
	if errno := placeDescriptors(c); errno != 0 {
		c.msg = [4]uint32{msgFailed, programFixed, fixedHand, uint32(errno)}
		sys(syscall.SYS_SENDTO, c.streams[ctlFD], uintptr(unsafe.Pointer(&c.msg)), msgSize, unix.MSG_NOSIGNAL, 0, 0)
		exit(127)
	}
	for {
		r := receiveProgram(c)
		failed, errno := runProgram(&r.script)
		if errno == 0 {
			failed = noStep
		}
		if r.acts != 0 && !beSelf(&c.self) {
			exit(1)
		}
		if closeFrom(firstFree) != 0 {
			exit(1)
		}
		if r.word == answered {
			continue
		}
		c.msg = [4]uint32{msgDone, uint32(failed), uint32(errno)}
		if _, errno := sys(syscall.SYS_SENDTO, ctlFD, uintptr(unsafe.Pointer(&c.msg)), msgSize, unix.MSG_NOSIGNAL, 0, 0); errno != 0 {
			exit(1)
		}
	}
}

// placeDescriptors puts what the hand keeps at its places and closes every other descriptor of the host process.
//
//go:norace
//go:nosplit
func placeDescriptors(c *handState) (errno uintptr) {
	for i := range uintptr(handFDs) {
		if c.scratch[i], errno = sys(syscall.SYS_FCNTL, c.streams[i], unix.F_DUPFD_CLOEXEC, handScratch, 0, 0, 0); errno != 0 {
			return errno
		}
	}
	for i := range uintptr(handFDs) {
		if _, errno = sys(unix.SYS_DUP3, c.scratch[i], i, unix.O_CLOEXEC, 0, 0, 0); errno != 0 {
			return errno
		}
	}
	return closeFrom(uintptr(handFDs))
}

// receiveProgram waits until the host side has written a program. Its descriptors take the lowest numbers, which is what the
// slots say; anything else means that the two sides have lost each other. No message means that the host side is gone.
//
//go:norace
//go:nosplit
func receiveProgram(c *handState) *handRun {
	n, errno := receive(&c.parcel)
	if errno != 0 || n != msgSize || c.msg[0] != msgRun {
		exit(0)
	}
	r := &c.runs[0]
	if c.msg[1] != 0 {
		r = &c.runs[1]
	}
	if !placed(&c.parcel, r.passed) {
		exit(1)
	}
	return r
}

// beSelf takes back the hand's own identity, and tells whether all of it is in force. The first capset gives the right to
// do the rest, the second one undoes what the change of ids does to the capabilities (capabilities(7)).
//
//go:norace
//go:nosplit
func beSelf(s *handSelf) bool {
	if !handCapset(s) {
		return false
	}
	if s.setgroups != 0 {
		if _, errno := sys(syscall.SYS_SETGROUPS, s.ngroups, s.groups, 0, 0, 0, 0); errno != 0 {
			return false
		}
	}
	sys(syscall.SYS_SETFSGID, uintptr(s.gid), 0, 0, 0, 0, 0)
	sys(syscall.SYS_SETFSUID, uintptr(s.uid), 0, 0, 0, 0, 0)
	gid, _ := sys(syscall.SYS_SETFSGID, noID, 0, 0, 0, 0, 0)
	uid, _ := sys(syscall.SYS_SETFSUID, noID, 0, 0, 0, 0, 0)
	euid, _ := sys(syscall.SYS_GETEUID, 0, 0, 0, 0, 0, 0)
	egid, _ := sys(syscall.SYS_GETEGID, 0, 0, 0, 0, 0, 0)
	if uint32(uid) != s.uid || uint32(gid) != s.gid || uint32(euid) != s.uid || uint32(egid) != s.gid {
		return false
	}
	// Any change of an identity may have made the process dumpable again, where fs.suid_dumpable says so.
	_, errno := sys(syscall.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0, 0)
	return errno == 0 && handCapset(s)
}

//go:norace
//go:nosplit
func handCapset(s *handSelf) bool {
	_, errno := sys(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&s.capHead)), uintptr(unsafe.Pointer(&s.capData)), 0, 0, 0, 0)
	return errno == 0
}
