package seccomp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/srt-sandbox/srt/seccomp/internal/sim"
)

// This file says once more what the filters do, in plain Go and with numbers from the kernel's tables
// (arch/x86/entry/syscalls/syscall_64.tbl, scripts/syscall.tbl), and takes nothing from internal/rules.

const (
	killProcess = 0x80000000
	allow       = 0x7fff0000
	errnoBit    = 0x00050000
	userNotif   = 0x7fc00000

	archX86    = 0x40000003
	archX86_64 = 0xc000003e
	archARM    = 0x40000028
	archARM64  = 0xc00000b7

	none = 0xfffffff0 // no such call on this architecture
)

var (
	filterNames = []string{"base", "namespaces", "unix", "unix-datagram", "ioctl-names", "names", "opens", "network",
		"observe-writes", "observe-all", "confined-sockets", "confined-network", "made-sockets", "changes", "confined"}
	archNames  = []string{"amd64", "arm64"}
	archTokens = map[string]uint32{"amd64": archX86_64, "arm64": archARM64}
)

// numbers of one call: on amd64, on arm64.
type numbers [2]uint32

func (n numbers) on(arch string) uint32 {
	if arch == "arm64" {
		return n[1]
	}
	return n[0]
}

// refusedAlways lists the calls that a filter answers with EPERM whatever their arguments.
var refusedAlways = map[string]map[string]numbers{
	"base": {
		"io_uring_setup": {425, 425}, "io_uring_enter": {426, 426}, "io_uring_register": {427, 427},
		"add_key": {248, 217}, "request_key": {249, 218}, "keyctl": {250, 219},
		"open_by_handle_at": {304, 265}, "userfaultfd": {323, 282}, "bpf": {321, 280},
		"perf_event_open": {298, 241}, "syslog": {103, 116}, "lookup_dcookie": {212, 18},
		"kexec_load": {246, 104}, "kexec_file_load": {320, 294},
		"init_module": {175, 105}, "finit_module": {313, 273}, "delete_module": {176, 106},
		"reboot": {169, 142}, "swapon": {167, 224}, "swapoff": {168, 225}, "acct": {163, 89},
		"settimeofday": {164, 170}, "clock_settime": {227, 112}, "quotactl": {179, 60}, "quotactl_fd": {443, 443},
		"vhangup": {153, 58}, "iopl": {172, none}, "ioperm": {173, none},
	},
	"namespaces": {
		"setns": {308, 268}, "mount": {165, 40}, "umount2": {166, 39}, "pivot_root": {155, 41},
		"open_tree": {428, 428}, "move_mount": {429, 429}, "fsopen": {430, 430}, "fsconfig": {431, 431},
		"fsmount": {432, 432}, "fspick": {433, 433}, "mount_setattr": {442, 442}, "open_tree_attr": {467, 467},
	},
}

// askedAlways lists the calls that names and opens put to the listener whatever their arguments.
var askedAlways = map[string]numbers{
	"creat": {85, none}, "openat2": {437, 437}, "mkdir": {83, none}, "mkdirat": {258, 34},
	"mknod": {133, none}, "mknodat": {259, 33}, "symlink": {88, none}, "symlinkat": {266, 36},
	"link": {86, none}, "linkat": {265, 37}, "rename": {82, none}, "renameat": {264, 38}, "renameat2": {316, 276},
	"bind": {49, 200},
	// What changes the rights or the umask of a thread, which the broker remembers.
	"umask": {95, 166}, "setuid": {105, 146}, "setgid": {106, 144}, "setreuid": {113, 145}, "setregid": {114, 143},
	"setresuid": {117, 147}, "setresgid": {119, 149}, "setfsuid": {122, 151}, "setfsgid": {123, 152},
	"setgroups": {116, 159},
}

// connectedAlways lists the calls that network puts to the listener whatever their arguments.
var connectedAlways = map[string]numbers{"connect": {42, 203}, "bind": {49, 200}, "getpeername": {52, 205}}

var (
	callOpen       = numbers{2, none}
	callOpenat     = numbers{257, 56}
	callLandlock   = numbers{444, 444}
	callIoctl      = numbers{16, 29}
	callPtrace     = numbers{101, 117}
	callSocket     = numbers{41, 198}
	callSocketpair = numbers{53, 199}
	callClone      = numbers{56, 220}
	callClone3     = numbers{435, 435}
	callUnshare    = numbers{272, 97}
	callGetsockopt = numbers{55, 209}
	callSendto     = numbers{44, 206}
	callSendmsg    = numbers{46, 211}
	callSendmmsg   = numbers{307, 269}
)

// want is what a filter must answer to d.
func want(filter, arch string, d sim.Data) uint32 {
	if d.Arch != archTokens[arch] {
		return killProcess // NET-82
	}
	if arch == "amd64" && d.Number >= 0x40000000 && d.Number != 0xffffffff {
		return killProcess // NET-82: x32
	}
	for _, n := range refusedAlways[filter] {
		if n.on(arch) != none && d.Number == n.on(arch) {
			return errnoBit | 1
		}
	}
	switch filter {
	case "base":
		return wantBase(arch, d)
	case "namespaces":
		return wantNamespaces(arch, d)
	case "ioctl-names":
		return wantIoctlNames(arch, d)
	case "names", "opens":
		return wantNames(filter, arch, d)
	case "network":
		return wantNetwork(arch, d)
	case "observe-writes", "observe-all":
		return wantObserve(filter, arch, d)
	case "changes":
		return wantChanges(arch, d)
	case "confined":
		return wantConfined(arch, d)
	case "confined-sockets", "confined-network", "made-sockets":
		return wantConfinedNet(filter, arch, d)
	default:
		return wantUnix(filter, arch, d)
	}
}

func wantBase(arch string, d sim.Data) uint32 {
	switch n := d.Number; {
	case unknownNumber(arch, n):
		return errnoBit | 38
	case n == callIoctl.on(arch):
		switch uint32(d.Args[1]) {
		case 0x5412, 0x541c, 0x5423:
			return errnoBit | 1
		}
	case n == callPtrace.on(arch) && d.Args[3]&0x200000 != 0:
		request := uint32(d.Args[0])
		if request == 0x4200 || request == 0x4206 || request == 21 && arch == "amd64" {
			return errnoBit | 1
		}
	case n == callSocketpair.on(arch) && uint32(d.Args[0]) != 1:
		return errnoBit | 97
	case n == callSocket.on(arch):
		return wantSocket(uint32(d.Args[0]), uint32(d.Args[1])%16, uint32(d.Args[2]))
	}
	return allow
}

// wantSocket is base's answer to socket.
func wantSocket(family, kind, protocol uint32) uint32 {
	const stream, dgram, raw, packet = 1, 2, 3, 10
	const protonosupport = errnoBit | 93
	var protocols []uint32
	switch {
	case family == 17: // AF_PACKET
		return errnoBit | 1
	case family == 1 || family == 40: // AF_UNIX, AF_VSOCK
		return allow
	case family == 16: // AF_NETLINK: ROUTE, SOCK_DIAG, KOBJECT_UEVENT
		protocols = []uint32{0, 4, 15}
	case family != 2 && family != 10:
		return errnoBit | 97
	case kind == raw || kind == packet && family == 2:
		return errnoBit | 1
	case kind == stream:
		protocols = []uint32{0, 6}
	case kind == dgram && family == 2:
		protocols = []uint32{0, 1, 17}
	case kind == dgram:
		protocols = []uint32{0, 17, 58}
	}
	if slices.Contains(protocols, protocol) {
		return allow
	}
	return protonosupport
}

// wantNetwork is the answer of the filter that a broker of connections has.
func wantNetwork(arch string, d sim.Data) uint32 {
	const fastopen = 0x20000000
	for _, n := range connectedAlways {
		if d.Number == n.on(arch) {
			return userNotif
		}
	}
	switch n := d.Number; {
	case n == callLandlock.on(arch) && d.Args[1]&innerLayer == 0:
		return errnoBit | 95
	case n == callGetsockopt.on(arch) && uint32(d.Args[1]) == 1 && uint32(d.Args[2]) == 4:
		return userNotif
	case (n == callSendto.on(arch) || n == callSendmmsg.on(arch)) && d.Args[3]&fastopen != 0,
		n == callSendmsg.on(arch) && d.Args[2]&fastopen != 0:
		return errnoBit | 95
	}
	return allow
}

// unknownNumber says whether Linux 6.18 lacks the number.
func unknownNumber(arch string, n uint32) bool {
	switch {
	case n == 0xffffffff:
		return false
	case n > 469:
		return true
	case n >= 424:
		return false
	case arch == "amd64":
		return n > 336
	}
	return n > 294 || n > 243 && n < 260
}

func wantNamespaces(arch string, d sim.Data) uint32 {
	const user, mnt, empty = 0x10000000, 0x20000, 0x100000
	flags := d.Args[0]
	switch d.Number {
	case callClone3.on(arch):
		return errnoBit | 38
	case callClone.on(arch):
		if flags&(user|mnt) != 0 {
			return errnoBit | 1
		}
	case callUnshare.on(arch):
		if flags&(user|mnt|empty) != 0 {
			return errnoBit | 1
		}
	}
	return allow
}

func wantUnix(filter, arch string, d sim.Data) uint32 {
	family := uint32(d.Args[0])
	datagram := d.Args[1]%16 == 2 || d.Args[1]%16 == 3
	switch d.Number {
	case callSocket.on(arch):
		if family == 40 || family == 1 && (filter == "unix" || datagram) {
			return errnoBit | 1
		}
	case callSocketpair.on(arch):
		if family == 1 && datagram {
			return errnoBit | 1
		}
	}
	return allow
}

func wantNames(filter, arch string, d sim.Data) uint32 {
	const creat = 0x40
	for _, n := range askedAlways {
		if n.on(arch) != none && d.Number == n.on(arch) {
			return userNotif
		}
	}
	switch n := d.Number; {
	case n == callOpenat.on(arch) && (filter == "opens" || d.Args[2]&creat != 0):
		return userNotif
	case arch == "amd64" && n == callOpen.on(arch) && (filter == "opens" || d.Args[1]&creat != 0):
		return userNotif
	case n == callLandlock.on(arch) && d.Args[1]&innerLayer == 0:
		return errnoBit | 95
	}
	return wantIoctlNames(arch, d)
}

func wantIoctlNames(arch string, d sim.Data) uint32 {
	if d.Number == callIoctl.on(arch) {
		switch uint32(d.Args[1]) {
		case 0x50009401, 0x5000940e, 0x50009417, 0x50009418, 0x40186f04, 0x4020bc10, 0x4030bc1d:
			return errnoBit | 1
		}
	}
	return allow
}

// raw returns a committed program.
func raw(t testing.TB, folder, filter, arch string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("%s_%s.bpf", filter, arch)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// parsed returns every program of a folder, by filter and architecture.
func parsed(t testing.TB, folder string) map[string]map[string]sim.Program {
	t.Helper()
	out := map[string]map[string]sim.Program{}
	for _, f := range filterNames {
		out[f] = map[string]sim.Program{}
		for _, a := range archNames {
			p, err := sim.Parse(raw(t, folder, f, a))
			if err != nil {
				t.Fatalf("%s for %s: %v", f, a, err)
			}
			out[f][a] = p
		}
	}
	return out
}

// innerLayer is the bit of the size by which an srt inside asks for a ruleset: it alone gets one, since it does not count on that
// for what the broker performs.
const innerLayer = 0x200
