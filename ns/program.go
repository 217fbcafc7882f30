//go:build linux

package ns

import (
	"syscall"
	"unsafe"
)

// A Program is a list of system calls that the child of Start executes before the command exists. Everything it
// points to is prepared beforehand: between clone and exec no memory is allocated and nothing is decided.
//
// The zero Program is empty and ready to use. Building one is not safe for concurrent use; a built one may be started
// many times, one Start at a time (its result slots and buffers are part of it, but the child works on its own copy).
type Program struct {
	steps  []step
	labels []label
	slots  uint32
	arena  []byte
	// keep holds everything that a step addresses, so that the garbage collector leaves it alone.
	keep []any
}

// label says what a step is for, in the words of an error message.
type label struct{ op, subject string }

// kind selects what the interpreter does with a step.
type kind uint8

const (
	kindCall   kind = iota // a system call
	kindStore              // *(*uint32)(args[0]) = uint32(args[1])
	kindExpect             // fail with args[3] unless *(*uint64)(args[0]) & args[1] == args[2]
)

// step is one instruction. An argument is the constant args[i], or the value of result slot from[i]-1 when that is not
// zero. The step is left out when the slot cond-1 holds no result, or, with unless, when it holds one.
type step struct {
	trap      uintptr
	args      [6]uintptr
	from      [6]uint32
	out, cond uint32
	kind      kind
	unless    bool
	tolerate  [3]uint16
}

// Slot names the result of an earlier step, usually a file descriptor in the child. The zero Slot is none.
type Slot uint32

// none is the value of a slot whose call failed with a tolerated error, or was left out.
const none = ^uintptr(0)

// Arg is one argument of a system call: a constant, a pointer to prepared memory, or the result of an earlier step.
type Arg struct {
	value uintptr
	from  Slot
}

// Int is a constant argument. Negative values (AT_FDCWD) keep their sign.
func Int[T ~int | ~int32 | ~int64 | ~uint32 | ~uint64 | ~uintptr](v T) Arg {
	return Arg{value: uintptr(v)}
}

// Arg uses the result as an argument.
func (s Slot) Arg() Arg { return Arg{from: s} }

const arenaChunk = 16 << 10

// Str is a pointer to a NUL-terminated copy of s. A NUL byte within s is the caller's mistake and ends the string
// there, as it would for any system call; callers reject such names first.
func (p *Program) Str(s string) Arg {
	b := p.alloc(len(s) + 1)
	copy(b, s)
	return Arg{value: uintptr(unsafe.Pointer(&b[0]))}
}

// Bytes is a pointer to b itself. The caller must not change or shrink b afterwards.
func (p *Program) Bytes(b []byte) Arg {
	if len(b) == 0 {
		return Arg{}
	}
	p.keep = append(p.keep, b)
	return Arg{value: uintptr(unsafe.Pointer(&b[0]))}
}

// Buffer is a pointer to n fresh zero bytes, aligned for any kernel structure, and the bytes themselves.
func (p *Program) Buffer(n int) (Arg, []byte) {
	words := make([]uint64, (n+7)/8)
	p.keep = append(p.keep, words)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)[:n:n]
	return Arg{value: uintptr(unsafe.Pointer(&words[0]))}, b
}

// Pointer is a pointer to *v, which must live on the heap: it is kept alive, and Go's collector does not move it.
func Pointer[T any](p *Program, v *T) Arg {
	p.keep = append(p.keep, v)
	return Arg{value: uintptr(unsafe.Pointer(v))}
}

func (p *Program) alloc(n int) []byte {
	if n > len(p.arena) {
		p.arena = make([]byte, max(n, arenaChunk))
		p.keep = append(p.keep, p.arena)
	}
	b := p.arena[:n:n]
	p.arena = p.arena[n:]
	return b
}

// Call appends a system call. op and subject name it in a StepError ("mount", "/proc"). The result slot may be ignored.
func (p *Program) Call(op, subject string, trap uintptr, args ...Arg) Slot {
	s := step{trap: trap, kind: kindCall}
	for i, a := range args {
		s.args[i], s.from[i] = a.value, uint32(a.from)
	}
	p.slots++
	s.out = p.slots
	p.append(s, label{op, subject})
	return Slot(s.out)
}

func (p *Program) append(s step, l label) {
	p.steps = append(p.steps, s)
	p.labels = append(p.labels, l)
}

// Tolerate lets the last call fail with one of at most three errors: its slot then holds no result and the program
// goes on.
func (p *Program) Tolerate(errnos ...syscall.Errno) {
	s := &p.steps[len(p.steps)-1]
	for i, e := range errnos {
		s.tolerate[i] = uint16(e)
	}
}

// OnlyIf leaves the last step out when slot s holds no result.
func (p *Program) OnlyIf(s Slot) { p.steps[len(p.steps)-1].cond = uint32(s) }

// Unless leaves the last step out when slot s holds a result.
func (p *Program) Unless(s Slot) {
	last := &p.steps[len(p.steps)-1]
	last.cond, last.unless = uint32(s), true
}

// Store appends a step that writes the 32 low bits of a slot to prepared memory at dst plus off bytes.
func (p *Program) Store(dst Arg, off int, s Slot) {
	st := step{kind: kindStore}
	st.args[0], st.from[1] = dst.value+uintptr(off), uint32(s)
	p.append(st, label{"store", ""})
}

// Expect appends a step that fails with errno unless the 8 bytes at src plus off, masked, equal want. It is how a
// program proves that what it opened is what the planner saw.
func (p *Program) Expect(op, subject string, src Arg, off int, mask, want uint64, errno syscall.Errno) {
	st := step{kind: kindExpect}
	st.args = [6]uintptr{src.value + uintptr(off), uintptr(mask), uintptr(want), uintptr(errno)}
	p.append(st, label{op, subject})
}

// Close appends the closing of a descriptor.
func (p *Program) Close(s Slot) {
	p.Call("close", "", syscall.SYS_CLOSE, s.Arg())
	p.OnlyIf(s)
}

// Len is the number of steps.
func (p *Program) Len() int { return len(p.steps) }
