package bpf

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// The registers of a system call as Linux 6.18 has them (arch/arm64/include/asm/ptrace.h, arch/x86/include/asm/ptrace.h).
var registers = map[string]func() *btf.Struct{
	"arm64": func() *btf.Struct {
		word := &btf.Int{Name: "unsigned long long", Size: 8}
		array := &btf.Array{Index: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}, Type: word, Nelems: 31}
		return &btf.Struct{Name: "pt_regs", Size: 336, Members: []btf.Member{
			{Name: "regs", Type: array}, {Name: "sp", Type: word, Offset: 248 * 8}, {Name: "pc", Type: word, Offset: 256 * 8},
			{Name: "pstate", Type: word, Offset: 264 * 8}, {Name: "orig_x0", Type: word, Offset: 272 * 8},
			{Name: "syscallno", Type: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}, Offset: 280 * 8}}}
	},
	"amd64": func() *btf.Struct {
		s := &btf.Struct{Name: "pt_regs", Size: 168}
		for i, name := range strings.Fields("r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di orig_ax ip cs flags sp ss") {
			s.Members = append(s.Members, btf.Member{Name: name, Type: &btf.Int{Name: "unsigned long", Size: 8}, Offset: btf.Bits(64 * i)})
		}
		return s
	},
}

// On each architecture the programs read the registers that hold the number and the arguments of a call there, and what they
// know of the other one is found not to exist: the kernel's own relocation is that of the library here.
func TestArchitectures_Registers(t *testing.T) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(traceObject))
	if err != nil {
		t.Fatal(err)
	}
	for arch, want := range map[string]struct {
		flavor  string
		offsets []int // of the number first, then of the arguments
	}{
		"arm64": {"pt_regs___arm64", []int{280, 272, 8, 16, 24, 32, 40}},
		"amd64": {"pt_regs___x86", []int{120, 112, 104, 96, 56, 72, 64}},
	} {
		target := kernelTypes(t, registers[arch]())
		found := map[int]bool{}
		exist, absent := 0, 0
		for _, ins := range spec.Programs["finished"].Instructions {
			relocation := btf.CORERelocationMetadata(&ins)
			if relocation == nil || !strings.Contains(relocation.String(), "pt_regs___") {
				continue
			}
			own := strings.Contains(relocation.String(), want.flavor)
			fixed := relocated(t, ins, relocation, target)
			switch {
			case strings.Contains(relocation.String(), "exists"):
				if (fixed.Constant == 1) != own || fixed.Constant != 0 && fixed.Constant != 1 {
					t.Errorf("%s: %v exists: %d", arch, relocation, fixed.Constant)
				}
				if own {
					exist++
				} else {
					absent++
				}
			case own && fixed.OpCode.Class() == asm.LdXClass:
				found[int(fixed.Offset)] = true
			case own:
				found[int(fixed.Constant)] = true
			}
		}
		if exist == 0 || absent == 0 {
			t.Errorf("%s: %d members looked for, and %d of the other architecture", arch, exist, absent)
		}
		for _, offset := range want.offsets {
			if !found[offset] {
				t.Errorf("%s: nothing reads byte %d; %v are read", arch, offset, found)
			}
		}
		if len(found) != len(want.offsets) {
			t.Errorf("%s: %v are read, want %v", arch, found, want.offsets)
		}
	}
}

func kernelTypes(t *testing.T, types ...btf.Type) *btf.Spec {
	t.Helper()
	b, err := btf.NewBuilder(types, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := b.Spec()
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func relocated(t *testing.T, ins asm.Instruction, r *btf.CORERelocation, target *btf.Spec) asm.Instruction {
	t.Helper()
	fixups, err := btf.CORERelocate([]*btf.CORERelocation{r}, []*btf.Spec{target}, le, func(btf.Type) (btf.TypeID, error) { return 1, nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := fixups[0].Apply(&ins); err != nil {
		t.Fatal(err)
	}
	return ins
}
