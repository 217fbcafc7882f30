package seccomp

import (
	"encoding/binary"
	"strings"
)

// The instructions of classic BPF that Stack looks at (linux/bpf_common.h, linux/seccomp.h).
const (
	insnSize    = 8
	opReturn    = 0x06 // BPF_RET | BPF_K
	opJump      = 0x05 // BPF_JMP | BPF_JA
	actionAllow = 0x7fff0000
	maxLength   = 4096 // BPF_MAXINSNS
)

// Stack joins filters into one: what one allows is put to the next, so the first that does not allow decides. One
// program is loaded in a third of the time of three, and looked at once for each call that the kernel does not answer
// from its bitmap. And it needs one listener, of which the kernel takes no second: [Filter.Notifies] holds for it if it
// holds for any of the filters.
//
// Loaded one upon the other, filters are answered by the strictest: death before an errno, that before a notification
// (seccomp(2)). So that the joint program answers likewise, the filters that notify stand last. Two of them must not
// refuse the same call with different errnos.
//
// Each "return allow" but the last program's becomes a jump to the next program. The jumps of a program stay within it.
// Filters whose joint program the kernel would not take (over 4096 instructions) are returned as they are.
func Stack(filters ...Filter) []Filter {
	total := 0
	notifies := false
	var names []string
	for _, f := range filters {
		total += len(f.program)
		names = append(names, f.Name)
		notifies = notifies || f.notifies
	}
	if len(filters) < 2 || total > maxLength*insnSize {
		return filters
	}
	joined := make([]byte, 0, total)
	for i, f := range filters {
		start := len(joined)
		joined = append(joined, f.program...)
		if i == len(filters)-1 {
			break
		}
		end := len(joined)
		for at := start; at < end; at += insnSize {
			insn := joined[at : at+insnSize]
			if binary.NativeEndian.Uint16(insn) == opReturn && binary.NativeEndian.Uint32(insn[4:]) == actionAllow {
				binary.NativeEndian.PutUint16(insn, opJump)
				binary.NativeEndian.PutUint32(insn[4:], uint32((end-at)/insnSize-1))
			}
		}
	}
	return []Filter{{Name: strings.Join(names, " + "), program: string(joined), notifies: notifies}}
}
