package seccomp

import (
	"bytes"
	"encoding/binary"
	"maps"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/srt-sandbox/srt/seccomp/internal/sim"
)

// interesting are argument values on both sides of every rule, with and without a set upper half.
var interesting = []uint64{
	0, 1, 2, 3, 4, 5, 10, 16, 17, 21, 29, 30, 38, 40, 41, 45, 0xfff, 0x4200, 0x4206, 0x5411, 0x5412, 0x5413, 0x541c,
	0x5423, 0x80802, 0x80803, 0x802, 0x20000, 0x40000, 0x100000, 0x200000, 0x3d0f00, 0x10000000, 0x10020011,
	0x1200011, 0x40000000, 0x7c020000, 0xffffffff, 1 << 32, 1<<32 | 1, 1<<32 | 40, 1<<32 | 0x5412, 1<<32 | 0x541c,
	1<<32 | 0x10000000, 0x3f, 0x40, 0x80, 0x241, 0xc2, 0x8000, 0x410002, 0x210000, 1<<32 | 0x40, 0x4000000000,
	0x50009401, 0x5000940e, 0x5000940f, 0x50009417, 0x50009418, 0x40186f04, 0x40186f05, 0x4020bc10, 0x4020bc11,
	0x4030bc1d, 1<<32 | 0x50009401, 1<<32 | 0x40186f04,
	0x40086602, 0x40086603, 1<<32 | 0x401c5820, 0x6609, 0xf50d, 0x4004f50d, 0xcf04, 0x5000943f,
	0x20000000, 0x20004000, 1<<32 | 0x20000000, 1<<32 | 4, 1 << 61,
	0xdead000000020000, 0xdead000000000026, 0xffffffff00000001, 0xffffffff00004206, ^uint64(0),
}

// judgedByArgument lists the calls whose answer depends on arguments.
var judgedByArgument = []numbers{callIoctl, callPtrace, callSocketpair, callClone, callUnshare, callOpen, callOpenat, callSetpriority, callIoprioSet}

// judgedByThree lists those whose answer depends on the first three, or on one beyond the second.
var judgedByThree = []numbers{callSocket, callGetsockopt, callSetsockopt, callSendto, callSendmsg, callSendmmsg}

// walk calls visit with every number from 0 to 1000 and some beyond, and interesting arguments.
func walk(arch string, visit func(sim.Data)) {
	var nrs []uint32
	for n := range uint32(1001) {
		nrs = append(nrs, n)
	}
	nrs = append(nrs, 0x3fffffff, 0x40000000, 0x40000001, 0x40000027, 0x40000029, 0x400001ff, 0x7fffffff, 0x80000000,
		0xfffffffe, 0xffffffff)
	for _, token := range []uint32{archX86_64, archARM64, archX86, archARM, 0} {
		for _, n := range nrs {
			d := sim.Data{Number: n, Arch: token, InstructionPointer: 0x1234567890}
			if token != archTokens[arch] {
				visit(d)
				continue
			}
			for i, a := range interesting {
				second := interesting
				if !slices.ContainsFunc(judgedByArgument, func(c numbers) bool { return c.on(arch) == n }) {
					second = interesting[(i+int(n))%len(interesting):][:1]
				}
				for _, b := range second {
					// Argument 0 with 1 (socket, ioctl, open), 3 (ptrace) and 2 (openat); the others are noise.
					d.Args = [6]uint64{a, b, ^a, b, ^b, a}
					visit(d)
				}
			}
			if slices.ContainsFunc(judgedByThree, func(c numbers) bool { return c.on(arch) == n }) {
				walkThree(d, visit)
			}
		}
	}
}

// walkThree visits d with domains, types and protocols of sockets, levels and options of getsockopt, and flags to send with.
func walkThree(d sim.Data, visit func(sim.Data)) {
	firsts := []uint64{0, 1, 2, 3, 10, 15, 16, 17, 18, 29, 38, 40, 43, 44, 1<<32 | 2, 1<<32 | 16, 1<<32 | 17, 0xffffffff0000000a, ^uint64(0)}
	seconds := []uint64{0, 1, 2, 3, 4, 5, 6, 41, 1<<32 | 41, 10, 11, 15, 16, 17, 0x801, 0x80002, 0x80803, 0x80005, 0x8000a, 1<<32 | 1, 1<<32 | 2, 1<<32 | 3, ^uint64(0)}
	thirds := []uint64{0, 1, 2, 3, 4, 5, 6, 9, 12, 15, 25, 54, 55, 57, 62, 1<<32 | 15, 16, 17, 18, 21, 33, 41, 47, 50, 58, 59, 94, 115, 132, 136, 143, 255, 256, 262, 4096,
		1<<32 | 4, 1<<32 | 6, 1<<32 | 262, 0x10000, 0x20000000, 0x20004040, 1<<32 | 0x20000000, 1 << 61, 0xdfffffff, ^uint64(0)}
	for _, a := range firsts {
		for _, b := range seconds {
			for i, c := range thirds {
				d.Args = [6]uint64{a, b, c, thirds[(i+1)%len(thirds)], ^a, b}
				visit(d)
			}
		}
	}
}

// testPrograms compares the programs of a folder with the statement.
func testPrograms(t *testing.T, folder string) {
	for filter, byArch := range parsed(t, folder) {
		for arch, program := range byArch {
			t.Run(filter+"_"+arch, func(t *testing.T) {
				walk(arch, func(d sim.Data) {
					if got, want := program.Run(d).Action, want(filter, arch, d); got != want {
						t.Fatalf("%+v: got %#x, want %#x", d, got, want)
					}
				})
			})
		}
	}
}

func TestFilters_NET3_NET81_NET82_NET83(t *testing.T) { testPrograms(t, "filters") }

// Only a number whose answer is "allow" without a look at the arguments is answered from the kernel's bitmap.
func TestFilters_CommonCallsReadNoArgument(t *testing.T) {
	conditional := map[string][]numbers{
		"base":          {callIoctl, callPtrace, callSocket, callSocketpair},
		"namespaces":    {callClone, callUnshare},
		"unix":          {callSocket, callSocketpair},
		"unix-datagram": {callSocket, callSocketpair},
		"ioctl-names":   {callIoctl},
		"names":         {callLandlock, callIoctl, callOpen, callOpenat},
		"opens":         {callLandlock, callIoctl},
		"network":       {callLandlock, callGetsockopt, callSendto, callSendmsg, callSendmmsg},

		"observe-writes": {callOpen, callOpenat},
		"changes":        append([]numbers{callLandlock, callIoctl, callOpen, callOpenat, callSetpriority, callIoprioSet}, slices.Collect(maps.Values(numberedCalls))...),

		"confined-sockets": {callSocket, callSetsockopt},
		"confined-network": {callLandlock, callSendto, callSendmsg, callSendmmsg},
	}
	for filter, byArch := range parsed(t, "filters") {
		for arch, program := range byArch {
			for n := range uint32(470) {
				r := program.Run(sim.Data{Number: n, Arch: archTokens[arch]})
				may := slices.ContainsFunc(conditional[filter], func(c numbers) bool { return c.on(arch) == n })
				if r.ReadArgument && !may {
					t.Errorf("%s for %s reads arguments of call %d", filter, arch, n)
				}
				most := 40
				if filter == "changes" {
					most = 80 // its list of requests of ioctl
				}
				if r.ReadArgument && r.Steps > most {
					t.Errorf("%s for %s takes %d instructions for call %d, want at most %d", filter, arch, r.Steps, n, most)
				}
			}
		}
	}
}

func TestFilter_ProgramIsTheCommittedOne(t *testing.T) {
	if err := Supported(); err != nil {
		t.Fatalf("no filters for %s: %v", runtime.GOARCH, err)
	}
	for _, f := range all() {
		p := f.Program()
		if !bytes.Equal(p, raw(t, "filters", f.Name, runtime.GOARCH)) {
			t.Errorf("%s: the embedded program is not the file's", f.Name)
		}
		clear(p)
		if bytes.Equal(p, f.Program()) {
			t.Errorf("%s: Program returned shared memory", f.Name)
		}
	}
}

func TestRules_CoverEveryFilterAndSayWhy(t *testing.T) {
	seen := map[string]map[string]bool{}
	for _, r := range Rules() {
		if seen[r.Filter] == nil {
			seen[r.Filter] = map[string]bool{}
		}
		key := r.Syscall + " " + r.Condition
		if seen[r.Filter][key] {
			t.Errorf("%s: %s stands twice", r.Filter, key)
		}
		seen[r.Filter][key] = true
		seen[r.Filter][r.Syscall] = true
		if r.Syscall == "" || r.Action == "" || r.Action == "unnamed errno" || r.Why == "" {
			t.Errorf("incomplete rule %+v", r)
		}
	}
	if len(seen) != len(filterNames) {
		t.Errorf("rules name %d filters, want %d", len(seen), len(filterNames))
	}
	for call := range askedAlways {
		for _, filter := range []string{"names", "opens"} {
			if !seen[filter][call] {
				t.Errorf("no rule of %s names %s", filter, call)
			}
		}
	}
	for call := range connectedAlways {
		if !seen["network"][call] {
			t.Errorf("no rule of network names %s", call)
		}
	}
	for filter, calls := range refusedAlways {
		for call := range calls {
			if !seen[filter][call] {
				t.Errorf("no rule of %s names %s", filter, call)
			}
		}
	}
}

// FuzzFilters compares the committed programs with the statement, and the simulator with another implementation.
func FuzzFilters(f *testing.F) {
	programs := parsed(f, "filters")
	vms := map[string]map[string]*bpf.VM{}
	for _, filter := range filterNames {
		vms[filter] = map[string]*bpf.VM{}
		for _, arch := range archNames {
			vms[filter][arch] = machine(f, raw(f, "filters", filter, arch))
		}
	}
	f.Fuzz(func(t *testing.T, filter, arch uint8, token, nr uint32, a0, a1, a2, a3 uint64) {
		name, on := filterNames[int(filter)%len(filterNames)], archNames[int(arch)%len(archNames)]
		if token%4 != 0 {
			token = archTokens[on] // three in four with the right architecture
		}
		d := sim.Data{Number: nr, Arch: token, Args: [6]uint64{a0, a1, a2, a3, a2, a1}}
		got := programs[name][on].Run(d).Action
		if want := want(name, on, d); got != want {
			t.Errorf("%s on %s, %+v: got %#x, want %#x", name, on, d, got, want)
		}
		other, err := vms[name][on].Run(packet(d))
		if err != nil {
			t.Fatal(err)
		}
		if uint32(other) != got {
			t.Errorf("%s on %s, %+v: the simulator says %#x, x/net/bpf %#x", name, on, d, got, uint32(other))
		}
	})
}

// machine loads a program into the virtual machine of x/net/bpf, which is made for packets.
func machine(t testing.TB, program []byte) *bpf.VM {
	t.Helper()
	var insns []bpf.Instruction
	for ; len(program) > 0; program = program[8:] {
		insns = append(insns, bpf.RawInstruction{Op: binary.LittleEndian.Uint16(program), Jt: program[2],
			Jf: program[3], K: binary.LittleEndian.Uint32(program[4:])}.Disassemble())
	}
	vm, err := bpf.NewVM(insns)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// packet is struct seccomp_data with every word in network order, as a packet filter loads words.
func packet(d sim.Data) []byte {
	b := binary.BigEndian.AppendUint32(nil, d.Number)
	b = binary.BigEndian.AppendUint32(b, d.Arch)
	for _, v := range append([]uint64{d.InstructionPointer}, d.Args[:]...) {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
		b = binary.BigEndian.AppendUint32(b, uint32(v>>32))
	}
	return b
}
