package ns

import (
	"encoding/binary"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Descriptor numbers in a hand, for the arguments of its programs (Int). Each program begins with these and its passed
// descriptors open and no others, so what it opens gets the lowest numbers from HandFirst on.
const (
	// HandListener is HandConfig.Listener.
	HandListener = 0
	// HandFDs is an O_PATH descriptor of the directory of the hand's own descriptors (proc_pid_fd(5)): a lookup of the
	// name "17" in it leads to descriptor 17, whatever file system and mount that is on, so that it can be opened
	// again with other flags. It lies outside the sandbox: nothing but such a name may ever be looked up in it.
	HandFDs = 1
	// HandFirst is the number of the first passed descriptor; the others follow in order.
	HandFirst = firstFree
)

// Scratch is a pointer to n bytes and the bytes themselves, for results that are read only where the kernel has written
// them: it differs from Buffer in that a hand's program finds there whatever an earlier one left.
func (p *Program) Scratch(n int) (Arg, []byte) {
	b := p.alloc(n, 8)
	return address(b), b
}

// ToEnd as the count of SkipUnless leaves out all the rest of the program.
const ToEnd = -1

// A Branch is a SkipUnless whose extent is not fixed yet.
type Branch struct {
	program *Program
	step    int
}

// SkipUnless appends a step that leaves out the next n steps (ToEnd: all) unless the 8 bytes at src plus off, masked,
// equal want. Slots of steps that are left out hold no result. Where n is not known yet, Branch.End sets it.
func (p *Program) SkipUnless(src Arg, off int, mask, want uint64, n int) Branch {
	st := step{kind: kindSkip}
	st.args = [6]uintptr{src.value + uintptr(off), uintptr(mask), uintptr(want), uintptr(n)}
	if n < 0 {
		st.args[3] = 1 << 31 // more steps than any program has
	}
	p.append(st, label{"skip", ""})
	return Branch{p, p.steps - 1}
}

// End makes the branch leave out exactly the steps that have been appended since.
func (b Branch) End() {
	if b.program.err == nil {
		b.program.step(b.step).args[3] = uintptr(b.program.steps - b.step - 1)
	}
}

// Name appends a step that writes the number in a slot as decimal text, the name of a descriptor in HandFDs, and gives a
// pointer to it. OnlyIf and Unless apply to the step.
func (p *Program) Name(s Slot) Arg {
	dst, _ := p.Scratch(nameSize)
	st := step{kind: kindName}
	st.args[0], st.from[1] = dst.value, uint32(s)
	p.append(st, label{"name", ""})
	return dst
}

// ReopenFD appends the opening of the very object that a descriptor of the hand is for, an O_PATH one for example, with
// other flags (open(2); O_CLOEXEC is added). It is done with the hand's rights, not with those of the descriptor. Only
// the last of its two steps can be refined; the descriptor in s must be open.
func (p *Program) ReopenFD(op, subject string, s Slot, flags int) Slot {
	name := p.Name(s)
	return p.Call(op, subject, syscall.SYS_OPENAT, Int(HandFDs), name, Int(flags|unix.O_CLOEXEC), Int(0))
}

// Identity is whose rights a program of a hand acts with, as numbers of the sandbox's user namespace (credentials(7)).
type Identity struct {
	// UID and GID are the file-system ids.
	UID, GID uint32
	// Groups are the supplementary groups.
	Groups []uint32
	// Effective capabilities. What the hand does not keep is left out.
	Effective Capabilities
}

// ActAs appends the change to another identity, for a hand that keeps CAP_SETUID and CAP_SETGID. Files that the program
// makes from there on belong to it, and the kernel judges every access by it. There is nothing to undo: however the
// program ends, the hand takes its own identity again before it answers, and ends if it cannot.
func (p *Program) ActAs(id Identity) {
	list, b := p.Scratch(4 * max(len(id.Groups), 1))
	for i, g := range id.Groups {
		binary.NativeEndian.PutUint32(b[4*i:], g)
	}
	const op = "act with the rights of the caller"
	if !p.fixedGroups {
		p.Call(op, "setgroups", syscall.SYS_SETGROUPS, Int(len(id.Groups)), list)
	}
	now, _ := p.Buffer(8)
	for _, set := range []struct {
		subject string
		trap    uintptr
		id      uint32
	}{{"setfsgid", syscall.SYS_SETFSGID, id.GID}, {"setfsuid", syscall.SYS_SETFSUID, id.UID}} {
		// The two report no error; asking with an id that cannot be tells what is in force (setfsuid(2)).
		p.Call(op, set.subject, set.trap, Int(set.id))
		p.Store(now, 0, p.Call(op, set.subject, set.trap, Arg{value: noID}))
		p.Expect(op, set.subject, now, 0, 1<<32-1, uint64(set.id), unix.EPERM)
	}
	p.capset(op, p.keep, id.Effective&p.keep)
}

// groupsAreFixed reports whether nobody in this user namespace, or one below it, can change supplementary groups
// (user_namespaces(7), /proc/pid/setgroups). A kernel without the file lets them be changed.
func groupsAreFixed() bool {
	text, err := os.ReadFile("/proc/self/setgroups")
	return err == nil && strings.TrimSpace(string(text)) == "deny"
}

// noID is no user or group.
const noID = 1<<32 - 1

// changesIdentity tells the calls after which a hand must take its own identity again.
func changesIdentity(trap uintptr) bool {
	switch trap {
	case syscall.SYS_SETGROUPS, syscall.SYS_SETFSUID, syscall.SYS_SETFSGID, syscall.SYS_SETUID, syscall.SYS_SETGID,
		syscall.SYS_SETREUID, syscall.SYS_SETREGID, syscall.SYS_SETRESUID, syscall.SYS_SETRESGID, syscall.SYS_CAPSET:
		return true
	}
	return false
}

// reset makes the program empty again. What it points to is not cleared: Buffer does that for what it gives.
func (p *Program) reset() {
	p.steps, p.data, p.slots, p.err, p.acts = 0, p.start, 0, nil, false
	p.labels, p.passed = p.labels[:0], p.passed[:0]
	p.reused = true
}

// passed is a descriptor of the host process that goes with a program, and the slot that holds its number in the hand.
type passed struct {
	fd   int
	slot Slot
}

// pass adds such a descriptor. Its number in the hand is known beforehand: see HandFirst.
func (p *Program) pass(fd int) Slot {
	if len(p.passed) == maxFiles {
		p.err = ErrProgramTooLarge
		return 0
	}
	p.slots++
	p.passed = append(p.passed, passed{fd, Slot(p.slots)})
	return Slot(p.slots)
}
