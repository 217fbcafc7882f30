//go:build generate

package main

import (
	"encoding/binary"
	"fmt"

	"github.com/srt-sandbox/srt/seccomp/internal/rules"
)

// The prologue says what libseccomp cannot: "any number above", "an argument in no list", and the numbers of system
// calls that are newer than the library. It comes first, so that it can stay out of the library's jumps (all of BPF's
// jumps are relative and forward):
//
//	load arch;  not ours        -> body, which kills
//	load nr;    unknown         -> ENOSYS        (x32 numbers and -1 -> body)
//	            newer call      -> its errno
//	            call with list  -> load argument; not in the list -> its errno
//	body: libseccomp's program
//
// Number -1 is what a tracer sets to skip a system call; the kernel makes nothing of it, and an answer from a filter
// would overwrite the tracer's.

// Classic BPF, linux/bpf_common.h, and the answers of linux/seccomp.h.
const (
	opLoadWord     = 0x20
	opJump         = 0x05
	opJumpEqual    = 0x15
	opJumpGreater  = 0x25
	opJumpGreaterE = 0x35
	opReturn       = 0x06

	retErrno = 0x00050000

	offsetNumber = 0
	offsetArch   = 4
	offsetArg0   = 16 // the low half, on little-endian machines

	x32Bit      = 0x40000000
	numberNone  = 0xffffffff
	auditX86_64 = 0xc000003e
	auditARM64  = 0xc00000b7
)

// next is the label of the following instruction, body of libseccomp's program.
const (
	next = ""
	body = "body"
)

// insn is one instruction with symbolic targets.
type insn struct {
	label  string // its own
	op     uint16
	k      uint32
	jt, jf string
}

func prologue(f rules.Filter, a rules.Arch) ([]byte, error) {
	var p []insn
	answers := map[rules.Errno]bool{}
	if f.RefuseUnknown {
		p = append(p, unknown(a)...)
		answers[rules.ENOSYS] = true
	}
	for _, r := range f.Rules {
		if r.Number == 0 || r.Only != "" && r.Only != a {
			continue
		}
		if len(r.When) != 0 {
			return nil, fmt.Errorf("rule for %s: a rule by number cannot have conditions", r.Call)
		}
		p = append(p, insn{op: opJumpEqual, k: r.Number, jt: r.Errno.String()})
		answers[r.Errno] = true
	}
	switch {
	case f.NotIn != nil:
		p = append(p, notIn(f.NotIn, a)...)
		answers[f.NotIn.Errno] = true
	case len(p) == 0:
		return nil, nil
	default:
		p = append(p, insn{op: opJump, jt: body})
	}
	arch := map[rules.Arch]uint32{rules.AMD64: auditX86_64, rules.ARM64: auditARM64}[a]
	p = append([]insn{
		{op: opLoadWord, k: offsetArch},
		{op: opJumpEqual, k: arch, jf: body},
		{op: opLoadWord, k: offsetNumber},
	}, p...)
	for _, e := range rules.Errnos() {
		if answers[e] {
			p = append(p, insn{label: e.String(), op: opReturn, k: retErrno | uint32(e)})
		}
	}
	return assemble(p)
}

// unknown refuses the numbers outside rules.Known, from the highest range down.
func unknown(a rules.Arch) []insn {
	known := rules.Known(a)
	enosys := rules.ENOSYS.String()
	var p []insn
	if a == rules.AMD64 {
		p = append(p, insn{op: opJumpGreaterE, k: x32Bit, jt: body})
	} else {
		p = append(p, insn{op: opJumpEqual, k: numberNone, jt: body})
	}
	for i := len(known) - 1; i >= 0; i-- {
		p = append(p, insn{op: opJumpGreater, k: known[i].Last, jt: enosys})
		if known[i].First > 0 {
			p = append(p, insn{op: opJumpGreaterE, k: known[i].First, jt: "known"})
		}
	}
	// The number is loaded and passed; "known" labels the instruction that follows.
	return append(p, insn{label: "known", op: opLoadWord, k: offsetNumber})
}

// notIn refuses the calls of n whose first argument is in no list. It leaves on every path, so it comes last.
func notIn(n *rules.NotIn, a rules.Arch) []insn {
	var p []insn
	for i, c := range n.Calls {
		in := insn{op: opJumpEqual, k: c.Number(a), jt: "argument"}
		if i == len(n.Calls)-1 {
			in.jf = body
		}
		p = append(p, in)
	}
	p = append(p, insn{label: "argument", op: opLoadWord, k: offsetArg0})
	for i, v := range n.Accept {
		in := insn{op: opJumpEqual, k: v, jt: body}
		if i == len(n.Accept)-1 {
			in.jf = n.Errno.String()
		}
		p = append(p, in)
	}
	return p
}

// assemble resolves the labels of p and encodes it. The label body lies just behind the last instruction.
func assemble(p []insn) ([]byte, error) {
	at := map[string]int{body: len(p)}
	for i, in := range p {
		if in.label == "" {
			continue
		}
		if _, twice := at[in.label]; twice {
			return nil, fmt.Errorf("prologue: two instructions are labelled %q", in.label)
		}
		at[in.label] = i
	}
	var out []byte
	for i, in := range p {
		jt, err := distance(at, in.jt, i)
		if err != nil {
			return nil, err
		}
		jf, err := distance(at, in.jf, i)
		if err != nil {
			return nil, err
		}
		if in.op == opJump {
			in.k, jt = uint32(jt), 0
		}
		out = binary.LittleEndian.AppendUint16(out, in.op)
		out = append(out, jt, jf)
		out = binary.LittleEndian.AppendUint32(out, in.k)
	}
	return out, nil
}

func distance(at map[string]int, label string, from int) (byte, error) {
	if label == next {
		return 0, nil
	}
	to, ok := at[label]
	if d := to - from - 1; ok && d >= 0 && d <= 255 {
		return byte(d), nil
	}
	return 0, fmt.Errorf("prologue: instruction %d cannot jump to %q", from, label)
}
