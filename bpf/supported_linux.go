package bpf

import (
	"errors"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Supported reports whether this process may have the kernel refuse names: nil, or an [*Unsupported] with the reason. It
// tries to load the smallest of hooks, and leaves nothing loaded. It takes microseconds where the answer is no, and about
// one millisecond where it is yes. Safe for concurrent use.
func Supported() error {
	if err := prerequisites(); err != nil {
		return err
	}
	if err := tryHook(noFunction); err != nil && !errors.Is(err, unix.EINVAL) {
		return refusedHook(err)
	}
	set, err := newFinder()
	if err != nil {
		return err
	}
	defer set.close()
	id, err := set.functionID("bpf_lsm_" + hooks[0])
	if err != nil {
		return refused("find the hook "+hooks[0], err)
	}
	if err := tryHook(id); err != nil {
		return refusedHook(err)
	}
	return nil
}

// noFunction is the number of a type that is no hook: a kernel that takes hooks at all says EINVAL to it.
const noFunction = 1

// tryHook loads a program of two instructions (w0 = 0; exit) for a hook.
func tryHook(id uint32) error {
	l := load{kind: progLSM, attach: attachLSM, attachID: id, license: "GPL"}
	prog, err := l.program("try", program{code: []byte{0xb4, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0}})
	if err != nil {
		return err
	}
	return prog.Close()
}

// refusedHook tells a lack of rights from a kernel that takes no hooks: both are EPERM. A map of this kind takes the
// same rights.
func refusedHook(err error) error {
	m, mapErr := createMap(mapSpec{"try", kindHash, 4, 4, 1, noPrealloc})
	if errors.Is(mapErr, unix.EPERM) {
		return powerless(mapErr)
	}
	closeAll(m)
	return refused("load a hook", err)
}

// powerless says that the capabilities of this process do not count.
func powerless(err error) error {
	return &Unsupported{Reason: ErrNoCapability, Err: err,
		Detail: "The capabilities of this process count in a user namespace alone; the broker needs none."}
}

// prerequisites asks what can be known without loading anything.
func prerequisites() error {
	if !capable() {
		return &Unsupported{Reason: ErrNoCapability, Detail: "It takes CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN, outside of any " +
			"user namespace; the broker needs neither."}
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return &Unsupported{Reason: ErrOldKernel, Err: err, Detail: "The version of the kernel cannot be told."}
	}
	if release := unix.ByteSliceToString(name.Release[:]); !atLeast(release, 6, 2) {
		return &Unsupported{Reason: ErrOldKernel, Detail: "This is Linux " + release + "; before 6.2 a hook can be passed over."}
	}
	return active()
}

// capable reports whether the effective capabilities allow BPF (bpf_capable and perfmon_capable in the kernel). In a user
// namespace they do not count; the kernel says so when it is asked for a map.
func capable() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return false
	}
	has := func(c int) bool { return data[c/32].Effective&(1<<(c%32)) != 0 }
	return has(unix.CAP_SYS_ADMIN) || has(unix.CAP_BPF) && has(unix.CAP_PERFMON)
}

// atLeast compares the release of a kernel, such as "6.18.4-arch1".
func atLeast(release string, major, minor int) bool {
	var have [2]int
	at := 0
	for i := range have {
		digits := 0
		for at < len(release) && release[at] >= '0' && release[at] <= '9' && digits < 6 {
			have[i] = 10*have[i] + int(release[at]-'0')
			at, digits = at+1, digits+1
		}
		if digits == 0 {
			return false
		}
		if i == 0 && (at == len(release) || release[at] != '.') {
			return false
		}
		at++
	}
	return have[0] > major || have[0] == major && have[1] >= minor
}

const (
	sysListModules = 461 // lsm_list_modules(2), Linux 6.8; one number on every architecture
	moduleBPF      = 109 // LSM_ID_BPF
	modulesFile    = "/sys/kernel/security/lsm"
)

// active reports an error unless "bpf" is among the active security modules. Where it is not, hooks load and attach, and
// are never asked.
func active() error {
	ids, err := listModules()
	if err == nil {
		for _, id := range ids {
			if id == moduleBPF {
				return nil
			}
		}
		return inactive(nil)
	}
	list, fileErr := os.ReadFile(modulesFile)
	if fileErr != nil {
		return inactive(errors.Join(err, fileErr))
	}
	if !inList(string(list), "bpf") {
		return inactive(nil)
	}
	return nil
}

func inList(list, name string) bool {
	for module := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		if module == name {
			return true
		}
	}
	return false
}

func inactive(err error) error {
	return &Unsupported{Reason: ErrInactive, Err: err,
		Detail: `Add "bpf" to the kernel's parameter lsm= to have names refused in the kernel; the broker does without.`}
}

func listModules() ([]uint64, error) {
	var ids [64]uint64
	size := uint32(unsafe.Sizeof(ids))
	n, _, errno := unix.Syscall(sysListModules, uintptr(unsafe.Pointer(&ids)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return nil, os.NewSyscallError("lsm_list_modules", errno)
	}
	return ids[:min(int(n), len(ids))], nil
}

// refused says what the kernel did not take. EPERM at the first step of all is a lack of capabilities.
func refused(step string, err error) error {
	return &Unsupported{Reason: ErrRefused, Err: err, Detail: "It failed to " + step + "; the broker does without."}
}
