//go:build linux

package ns

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Program is a list of system calls that the child of Prepare executes before the command exists. Everything it
// points to is prepared beforehand: between clone and exec no memory is allocated and nothing is decided.
//
// It lives in memory that is shared with the child, so that it can be written while the namespaces are being made: what
// Prepare needs of that memory is set aside from the start. It is built by one goroutine and started once. Release gives the memory back; the child keeps its own view of it.
type Program struct {
	mem    []byte // the whole mapping: steps in the lower half, what they point to in the upper
	steps  int    // how many there are
	data   int    // where the next allocation goes
	slots  uint32
	labels []label
	child  *child // in mem; Prepare's alone until Start
	pad    *launchpad
	err    error
	bare   bool // it leaves no capability to the process (KeepCapabilities)
	// Of a confined sandbox: ConfineCapabilities was called, and what it keeps.
	confines bool
	kept     Capabilities
	restrict Slot // RestrictCommand
	ahead    int  // steps that are run before the word to go on (Ahead)

	// Of the programs of a Hand, one after another in the same memory (handprogram_linux.go).
	start  int          // where their allocations begin
	reused bool         // memory may hold what an earlier program left there
	passed []passed     // descriptors that go with the program, the caller's
	acts   bool         // it changes whose rights the hand acts with
	keep   Capabilities // what ActAs can choose from
	// fixedGroups says that the supplementary groups cannot be changed, by whoever it is.
	fixedGroups bool
	word        *uint32 // handRun.word
}

// programSize is the address space of a program. Only what is used takes memory: about 2 KiB for each mount.
const (
	programSize = 256 << 20
	stepSize    = int(unsafe.Sizeof(step{}))
)

// usualSteps is how many steps most launch programs do not exceed.
const usualSteps = 600

// usualLabels has lists of labels, empty, with room for so many steps.
var usualLabels = sync.Pool{New: func() any { l := make([]label, 0, usualSteps); return &l }}

// ErrProgramTooLarge says that a program does not fit in its memory. That of a launch program is more than the kernel's
// limit of mounts needs (fs.mount-max), that of a hand's is handSize.
var ErrProgramTooLarge = errors.New("the program of system calls is too large for its memory")

// NewProgram gives an empty launch program.
func NewProgram() (*Program, error) {
	p, err := mapProgram(programSize, "map memory for the launch program")
	if err != nil {
		return nil, err
	}
	p.labels = *usualLabels.Get().(*[]label)
	p.child = (*child)(unsafe.Pointer(unsafe.SliceData(p.alloc(int(unsafe.Sizeof(child{})), 8))))
	p.pad = (*launchpad)(unsafe.Pointer(unsafe.SliceData(p.alloc(int(unsafe.Sizeof(launchpad{})), 16))))
	p.pad.own.child = p.child
	return p, nil
}

// mapProgram maps size bytes, half of them for steps. op names that in an error.
func mapProgram(size int, op string) (*Program, error) {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, &StepError{Op: op, Err: err}
	}
	return &Program{mem: mem, data: size / 2}, nil
}

// Release gives the program's memory back. It is idempotent.
func (p *Program) Release() error {
	if p.mem == nil {
		return nil
	}
	mem, labels := p.mem, p.labels
	p.mem, p.labels = nil, nil
	if cap(labels) == usualSteps {
		clear(labels)
		labels = labels[:0]
		usualLabels.Put(&labels)
	}
	return os.NewSyscallError("munmap", unix.Munmap(mem))
}

// label says what a step is for, in the words of an error message.
type label struct{ op, subject string }

// kind selects what the interpreter does with a step.
type kind uint8

const (
	kindCall     kind = iota // a system call
	kindStore                // *(*uint32)(args[0]) = uint32(args[1])
	kindExpect               // fail with args[3] unless *(*uint64)(args[0]) & args[1] == args[2]
	kindSkip                 // leave out the next args[3] steps unless *(*uint64)(args[0]) & args[1] == args[2]
	kindAnswered             // *(*uint32)(args[0]) = answered, if it is silent
	kindName                 // write args[1] in decimal and a NUL byte to args[0]
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

// A slot whose call failed with a tolerated error holds the negative error, as the kernel itself returns it, and leftOut
// until a step has filled it. Both are none: no result of a system call lies there (syscall(2)).
const (
	none    = ^uintptr(0)
	maxErr  = 4095
	leftOut = ^uintptr(maxErr - 1)
)

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

// Str is a pointer to a NUL-terminated copy of s. A NUL byte within s is the caller's mistake and ends the string
// there, as it would for any system call; callers reject such names first.
func (p *Program) Str(s string) Arg {
	b := p.alloc(len(s)+1, 1)
	b[copy(b, s)] = 0
	return address(b)
}

// Bytes is a pointer to a copy of b.
func (p *Program) Bytes(b []byte) Arg {
	c := p.alloc(len(b), 8)
	copy(c, b)
	return address(c)
}

// Buffer is a pointer to n zero bytes, aligned for any kernel structure, and the bytes themselves.
func (p *Program) Buffer(n int) (Arg, []byte) {
	b := p.alloc(n, 8)
	if p.reused {
		clear(b)
	}
	return address(b), b
}

// Pointer is a pointer to a copy of *v. Pointers within it must lead to memory of the program itself.
func Pointer[T any](p *Program, v *T) Arg {
	b := p.alloc(int(unsafe.Sizeof(*v)), 8)
	copy(b, unsafe.Slice((*byte)(unsafe.Pointer(v)), len(b)))
	return address(b)
}

func address(b []byte) Arg {
	if len(b) == 0 {
		return Arg{}
	}
	return Arg{value: uintptr(unsafe.Pointer(&b[0]))}
}

// alloc takes n bytes of the program's memory, which are zero in a launch program. When there is none left it remembers
// that and gives memory that no child will see.
func (p *Program) alloc(n, align int) []byte {
	start := (p.data + align - 1) &^ (align - 1)
	if p.err != nil || start+n > len(p.mem) {
		p.err = ErrProgramTooLarge
		return make([]byte, n)
	}
	p.data = start + n
	return p.mem[start : start+n : start+n]
}

// Call appends a system call. op and subject name it in a StepError ("mount", "/proc"). The result slot may be ignored.
func (p *Program) Call(op, subject string, trap uintptr, args ...Arg) Slot {
	s := step{trap: trap, kind: kindCall}
	for i, a := range args {
		s.args[i], s.from[i] = a.value, uint32(a.from)
	}
	p.slots++
	s.out = p.slots
	p.acts = p.acts || changesIdentity(trap)
	p.append(s, label{op, subject})
	return Slot(s.out)
}

// Ahead ends the part of a launch program that is run as soon as the namespaces are made, while the rest is being written. It
// knows nothing of the host side's decisions: what it does must be right for every command, or undone with the process. What it
// has opened is closed at its end, so its results are none for the steps that follow. It is called at most once, before
// Prepare; a step of it that fails is reported by Start.
func (p *Program) Ahead() {
	p.child.ahead, _ = p.seal()
	p.ahead = p.steps
}

// seal appends the slots, none of them filled, and gives what the interpreter needs: the steps since Ahead, or since the
// beginning.
func (p *Program) seal() (script, []uintptr) {
	arg, b := p.Scratch(8 * (int(p.slots) + 1))
	slots := unsafe.Slice((*uintptr)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
	for i := range slots {
		slots[i] = leftOut
	}
	return script{steps: p.step(p.ahead), nsteps: p.steps - p.ahead, slots: (*uintptr)(pointer(arg.value))}, slots
}

func (p *Program) append(s step, l label) {
	if (p.steps+1)*stepSize > len(p.mem)/2 {
		p.err = ErrProgramTooLarge
		return
	}
	*p.step(p.steps) = s
	p.steps++
	p.labels = append(p.labels, l)
}

func (p *Program) step(i int) *step { return (*step)(unsafe.Pointer(&p.mem[i*stepSize])) }

// last is the step that was appended last, for the methods that refine it.
func (p *Program) last() *step {
	if p.err != nil || p.steps == 0 {
		return &step{}
	}
	return p.step(p.steps - 1)
}

// Tolerate lets the last call fail with one of at most three errors: its slot then holds no result and the program
// goes on.
func (p *Program) Tolerate(errnos ...syscall.Errno) {
	s := p.last()
	for i, e := range errnos {
		s.tolerate[i] = uint16(e)
	}
}

// OnlyIf leaves the last step out when slot s holds no result.
func (p *Program) OnlyIf(s Slot) { p.last().cond = uint32(s) }

// Unless leaves the last step out when slot s holds a result.
func (p *Program) Unless(s Slot) {
	last := p.last()
	last.cond, last.unless = uint32(s), true
}

// Store appends a step that writes the 32 low bits of a slot, 0 for the zero Slot, to prepared memory at dst plus off bytes.
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
func (p *Program) Len() int { return p.steps }
