// Package sim runs classic BPF the way the kernel runs a seccomp filter.
//
// What belongs here: the dialect that seccomp accepts (seccomp_check_filter in kernel/seccomp.c) and its meaning. It
// exists for tests. What does not: any knowledge of the rules.
package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Data is struct seccomp_data (seccomp(2)).
type Data struct {
	Number             uint32
	Arch               uint32 // AUDIT_ARCH_*
	InstructionPointer uint64
	Args               [6]uint64
}

// Size is the size of struct seccomp_data in bytes.
const Size = 64

// word returns the 32-bit word at a byte offset, on a little-endian machine.
func (d *Data) word(offset uint32) uint32 {
	switch {
	case offset == 0:
		return d.Number
	case offset == 4:
		return d.Arch
	case offset < 16:
		return half(d.InstructionPointer, offset-8)
	}
	return half(d.Args[(offset-16)/8], (offset-16)%8)
}

func half(v uint64, offset uint32) uint32 { return uint32(v >> (8 * offset)) }

// Result is what a filter said and how.
type Result struct {
	Action       uint32 // SECCOMP_RET_* with its data
	Steps        int    // instructions executed
	ReadArgument bool   // it looked at more than number and architecture: the kernel cannot answer from its bitmap
}

// Limits and opcodes of linux/bpf_common.h.
const (
	maxInstructions = 4096

	opLoadWord     = 0x20
	opJump         = 0x05
	opJumpEqual    = 0x15
	opJumpGreater  = 0x25
	opJumpGreaterE = 0x35
	opJumpSet      = 0x45
	opAnd          = 0x54
	opReturn       = 0x06
)

// ErrInvalid says that the kernel would not load the program.
var ErrInvalid = errors.New("invalid seccomp filter")

type insn struct {
	op     uint16
	jt, jf uint8
	k      uint32
}

// Program is a checked filter. It is immutable.
type Program []insn

// Parse decodes an array of little-endian struct sock_filter and checks it as the kernel does. It knows the part of
// the instruction set that libseccomp emits; an error for any other instruction says so.
func Parse(raw []byte) (Program, error) {
	if len(raw) == 0 || len(raw)%8 != 0 || len(raw)/8 > maxInstructions {
		return nil, fmt.Errorf("%w: %d bytes", ErrInvalid, len(raw))
	}
	var p Program
	for ; len(raw) > 0; raw = raw[8:] {
		p = append(p, insn{binary.LittleEndian.Uint16(raw), raw[2], raw[3], binary.LittleEndian.Uint32(raw[4:])})
	}
	for i := range p {
		if err := p.check(i); err != nil {
			return nil, fmt.Errorf("%w: instruction %d: %w", ErrInvalid, i, err)
		}
	}
	return p, nil
}

func (p Program) check(i int) error {
	in, left := p[i], uint64(len(p)-i-1)
	switch in.op {
	case opLoadWord:
		if in.k%4 != 0 || in.k >= Size {
			return fmt.Errorf("load from offset %d", in.k)
		}
	case opJump:
		if uint64(in.k) >= left {
			return errors.New("jump past the end")
		}
	case opJumpEqual, opJumpGreater, opJumpGreaterE, opJumpSet:
		if uint64(in.jt) >= left || uint64(in.jf) >= left {
			return errors.New("jump past the end")
		}
	case opAnd, opReturn:
	default:
		return fmt.Errorf("opcode %#x, which this simulator does not know", in.op)
	}
	if left == 0 && in.op != opReturn {
		return errors.New("the last instruction is no return")
	}
	return nil
}

// Run returns the answer of p to one system call.
func (p Program) Run(d Data) Result {
	var a uint32
	var r Result
	for pc := 0; ; pc++ {
		in := p[pc]
		r.Steps++
		switch in.op {
		case opLoadWord:
			a = d.word(in.k)
			r.ReadArgument = r.ReadArgument || in.k >= 8
		case opAnd:
			a &= in.k
		case opReturn:
			r.Action = in.k
			return r
		case opJump:
			pc += int(in.k)
		default:
			pc += in.branch(a)
		}
	}
}

func (in insn) branch(a uint32) int {
	var taken bool
	switch in.op {
	case opJumpEqual:
		taken = a == in.k
	case opJumpGreater:
		taken = a > in.k
	case opJumpGreaterE:
		taken = a >= in.k
	case opJumpSet:
		taken = a&in.k != 0
	}
	if taken {
		return int(in.jt)
	}
	return int(in.jf)
}
