package sim

import (
	"encoding/binary"
	"errors"
	"testing"
)

func encode(insns ...insn) []byte {
	var b []byte
	for _, in := range insns {
		b = binary.LittleEndian.AppendUint16(b, in.op)
		b = append(b, in.jt, in.jf)
		b = binary.LittleEndian.AppendUint32(b, in.k)
	}
	return b
}

// What seccomp_check_filter and bpf_check_classic in the kernel refuse, Parse refuses.
func TestParse_RefusesWhatTheKernelRefuses(t *testing.T) {
	ret := insn{op: opReturn}
	for name, raw := range map[string][]byte{
		"empty":            nil,
		"half instruction": encode(ret)[:4],
		"no return":        encode(insn{op: opLoadWord}),
		"unaligned load":   encode(insn{op: opLoadWord, k: 2}, ret),
		"load beyond data": encode(insn{op: opLoadWord, k: Size}, ret),
		"jump too far":     encode(insn{op: opJump, k: 1}, ret),
		"branch too far":   encode(insn{op: opJumpEqual, jf: 1}, ret),
		"packet load":      encode(insn{op: 0x28}, ret),
		"too long":         make([]byte, 8*(maxInstructions+1)),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(raw); !errors.Is(err, ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
		})
	}
}

func TestRun_ReadsEveryField(t *testing.T) {
	d := Data{Number: 1, Arch: 2, InstructionPointer: 3 | 4<<32, Args: [6]uint64{5 | 6<<32, 7 | 8<<32, 9 | 10<<32,
		11 | 12<<32, 13 | 14<<32, 15 | 16<<32}}
	for offset := uint32(0); offset < Size; offset += 4 {
		p, err := Parse(encode(insn{op: opLoadWord, k: offset}, insn{op: opJumpEqual, k: offset/4 + 1, jf: 1},
			insn{op: opReturn, k: 1}, insn{op: opReturn, k: 0}))
		if err != nil {
			t.Fatal(err)
		}
		r := p.Run(d)
		if r.Action != 1 || r.Steps != 3 || r.ReadArgument != (offset >= 8) {
			t.Errorf("offset %d: %+v", offset, r)
		}
	}
}

func TestRun_Branches(t *testing.T) {
	for _, c := range []struct {
		op   uint16
		a, k uint32
		want uint32
	}{
		{opJumpEqual, 5, 5, 1}, {opJumpEqual, 5, 6, 0}, {opJumpGreater, 6, 5, 1}, {opJumpGreater, 5, 5, 0},
		{opJumpGreaterE, 5, 5, 1}, {opJumpGreaterE, 4, 5, 0}, {opJumpSet, 6, 4, 1}, {opJumpSet, 6, 1, 0},
	} {
		p, err := Parse(encode(insn{op: opLoadWord}, insn{op: opAnd, k: 0xff}, insn{op: opJump},
			insn{op: c.op, k: c.k, jf: 1}, insn{op: opReturn, k: 1}, insn{op: opReturn}))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Run(Data{Number: c.a | 0x100}).Action; got != c.want {
			t.Errorf("op %#x, a %d, k %d: got %d, want %d", c.op, c.a, c.k, got, c.want)
		}
	}
}
