package ns

import (
	"slices"
	"testing"
	"unsafe"
)

// aVariable lies among the program's variables.
var aVariable uintptr

func TestAnonymousMemoryIsTold(t *testing.T) {
	const file = "00c92000-00d10000 rw-p 00892000 fe:00 10194575                           /tmp/program\n"
	const variables = "00d10000-02d52000 rw-p 00000000 00:00 0 \n"
	const records = "7fb02d2a0000-7fb02d420000 rw-p 00000000 00:00 0 \n"
	const reserved = "7fb03f600000-7fb056118000 ---p 00000000 00:00 0 \n"
	const shared = "7fb02d420000-7fb03d420000 rw-s 00000000 00:01 1648285                    /dev/zero (deleted)\n"
	const named = "7fb056118000-7fb056119000 rw-p 00000000 00:00 0                          [anon: Go: heap index]\n"
	const stack = "7ffe5121f000-7ffe51240000 rw-p 00000000 00:00 0                          [stack]\n"
	found := region{0x7fb02d2a0000, 0x7fb02d420000}
	for _, c := range []struct {
		what, text string
		want       []region
	}{
		{"nothing", "", nil},
		{"memory without a name", records, []region{found}},
		{"memory that the runtime has named", named, []region{{0x7fb056118000, 0x7fb056119000}}},
		{"variables of the program", file + variables, nil},
		{"what borders on variables", file + variables + "02d52000-02d53000 rw-p 00000000 00:00 0 \n", nil},
		{"memory behind a file's", file + records, []region{found}},
		{"address space alone, shared memory, the stack", reserved + shared + stack, nil},
		{"all of them", file + variables + records + shared + reserved + named + stack, []region{found, {0x7fb056118000, 0x7fb056119000}}},
		{"a line too short", records + "7fb02d2a0000-7fb02d420000 rw-p\n", nil},
		{"no address", records + "7fb02d2a0000 rw-p 00000000 00:00 0 \n", nil},
	} {
		if got := anonymous(nil, []byte(c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %x, want %x", c.what, got, c.want)
		}
	}
}

// The runtime's records are left out where no C code is linked in (CGO_ENABLED=0), and nothing is where it is.
func TestRecordsAreLeftOutOfForks(t *testing.T) {
	p := newProgram(t)
	defer p.Release()
	var h goHeap
	place := uintptr(unsafe.Pointer(p.pad))
	h.leaveOut(place, p.mem)
	h.takeIn()
	if len(h.records.regions) != 0 {
		t.Errorf("the first fork has looked for %d regions", len(h.records.regions))
	}
	h.leaveOut(place, p.mem)
	var without []region
	for _, r := range h.records.regions {
		if forkedWithout(t, r.start) {
			without = append(without, r)
		}
	}
	variables := forkedWithout(t, uintptr(unsafe.Pointer(&aVariable)))
	h.takeIn()
	if !slices.Equal(without, h.records.regions) || (len(without) > 0) == hasC {
		t.Errorf("left out: %x of %x; C code: %t", without, h.records.regions, hasC)
	}
	if variables {
		t.Error("the program's variables are left out")
	}
	for _, r := range without {
		if forkedWithout(t, r.start) {
			t.Errorf("%x is still left out", r)
		}
	}
}

// The memory of a program may lie where something that was left out has been.
func TestOwnMemoryIsCopiedWhereRecordsHaveBeen(t *testing.T) {
	p := newProgram(t)
	defer p.Release()
	start := uintptr(unsafe.Pointer(unsafe.SliceData(p.mem)))
	var h goHeap
	h.records.regions = []region{{start, start + uintptr(len(p.mem))}}
	h.leaveOut(start)
	without := forkedWithout(t, start)
	h.takeIn()
	h.records = records{regions: []region{{start, start + uintptr(len(p.mem))}}}
	h.leaveOut(start, p.mem)
	defer h.takeIn()
	if kept := !forkedWithout(t, start); !without || !kept {
		t.Errorf("left out without being asked for %t, kept when asked for %t; want both", without, kept)
	}
}
