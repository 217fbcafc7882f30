//go:build generate

package main

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/srt-sandbox/srt/seccomp/internal/rules"
)

// The prologue says what libseccomp cannot: "any number above", "an argument in no list", and the numbers of system
// calls that are newer than the library. It comes first, so that it can stay out of the library's jumps (all of BPF's
// jumps are relative and forward):
//
//	load arch;  not ours        -> body, which kills
//	load nr;    unknown         -> ENOSYS        (x32 numbers and -1 -> body)
//	            newer call      -> its errno, or the listener
//	            judged call     -> its choices, one argument after the other -> its errno, or allow
//	body: libseccomp's program
//
// A judged call never reaches the body: no rule there may name it.
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
	opAnd          = 0x54
	opReturn       = 0x06

	retErrno = 0x00050000
	retAsk   = 0x7fc00000
	retAllow = 0x7fff0000

	offsetNumber = 0
	offsetArch   = 4
	offsetArg0   = 16 // the low half, on little-endian machines

	x32Bit      = 0x40000000
	numberNone  = 0xffffffff
	auditX86_64 = 0xc000003e
	auditARM64  = 0xc00000b7
)

// next is the label of the following instruction, body of libseccomp's program, allow and ask of the answers.
const (
	next  = ""
	body  = "body"
	allow = "allow"
	ask   = "ask"
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
	asks := false
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
		if r.Notify {
			p = append(p, insn{op: opJumpEqual, k: r.Number, jt: ask})
			asks = true
			continue
		}
		p = append(p, insn{op: opJumpEqual, k: r.Number, jt: r.Errno.String()})
		answers[r.Errno] = true
	}
	calls, choices, err := judged(f, a)
	if err != nil {
		return nil, err
	}
	if len(p)+len(calls) == 0 {
		return nil, nil
	}
	p = append(append(p, calls...), insn{op: opJump, jt: body})
	for _, c := range choices {
		p = append(p, choose(c, choices)...)
		if c.Ask {
			asks = true
		} else {
			answers[c.Otherwise] = true
		}
		for _, v := range c.Cases {
			answers[v.Errno] = true
		}
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
	if asks {
		p = append(p, insn{label: ask, op: opReturn, k: retAsk})
	}
	if len(choices) > 0 {
		p = append(p, insn{label: allow, op: opReturn, k: retAllow})
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

// judged gives the jumps to the choices of f's judged calls, and the choices, those of a higher argument later: all jumps
// are forward. A choice that several lead to is there once.
func judged(f rules.Filter, a rules.Arch) (calls []insn, choices []*rules.Choice, err error) {
	for _, j := range f.Judged {
		if slices.ContainsFunc(f.Rules, func(r rules.Rule) bool { return r.Call == j.Call.Name }) {
			return nil, nil, fmt.Errorf("%s is judged by its arguments and named in a rule", j.Call.Name)
		}
		choices = gather(choices, j.By)
	}
	slices.SortStableFunc(choices, func(x, y *rules.Choice) int { return int(x.Index) - int(y.Index) })
	for _, j := range f.Judged {
		calls = append(calls, insn{op: opJumpEqual, k: j.Call.Number(a), jt: choiceLabel(choices, j.By)})
	}
	return calls, choices, nil
}

// gather adds c and all that it leads to.
func gather(choices []*rules.Choice, c *rules.Choice) []*rules.Choice {
	if slices.Contains(choices, c) {
		return choices
	}
	choices = append(choices, c)
	for _, v := range c.Cases {
		if v.Next != nil {
			choices = gather(choices, v.Next)
		}
	}
	return choices
}

func choiceLabel(choices []*rules.Choice, c *rules.Choice) string {
	return fmt.Sprintf("choice %d", slices.Index(choices, c))
}

// choose is the code of c, one of choices. It leaves on every path.
func choose(c *rules.Choice, choices []*rules.Choice) []insn {
	p := []insn{{label: choiceLabel(choices, c), op: opLoadWord, k: offsetArg0 + 8*uint32(c.Index)}}
	if c.Mask != 1<<32-1 {
		p = append(p, insn{op: opAnd, k: c.Mask})
	}
	for _, v := range c.Cases {
		to := allow
		switch {
		case v.Next != nil:
			to = choiceLabel(choices, v.Next)
		case v.Errno != 0:
			to = v.Errno.String()
		}
		p = append(p, insn{op: opJumpEqual, k: v.Value, jt: to})
	}
	if p[len(p)-1].jf = c.Otherwise.String(); c.Ask {
		p[len(p)-1].jf = ask
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
