package fsview

// A sandbox's /dev, /proc and /sys are the same whatever the settings say (FS-47, docs/architecture.md). The tables here are
// all there is to them.

// devNode is a device that is passed through from the host's /dev. The number is proven before it is used: a container
// runtime was once led to expose another device by a link in its place (CVE-2025-31133).
type devNode struct {
	name         string
	major, minor uint32
}

var devNodes = [...]devNode{
	{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0},
}

// memoryDevices is the major number of the devices that are the same whichever file names them.
const memoryDevices = 1

// MemoryDevice gives the path at which a sandbox's own /dev shows the device with these numbers, for null, zero, full,
// random and urandom.
func MemoryDevice(major, minor uint32) (path string, ok bool) {
	for _, n := range devNodes {
		if n.major == memoryDevices && n.major == major && n.minor == minor {
			return "/dev/" + n.name, true
		}
	}
	return "", false
}

// devLinks are the links in /dev, with their targets.
var devLinks = [...][2]string{
	{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"},
	{"core", "/proc/kcore"}, {"ptmx", "pts/ptmx"},
}

// protection says what is done to a path of the kernel's own file systems.
type protection uint8

const (
	readOnly protection = iota
	hidden              // a directory becomes an empty one, a file an empty unreadable one
)

// kernelPath is a path through which a process with user id 0 could change or learn things of the host, because owner
// checks in procfs and sysfs pass for it. The lists follow what container runtimes protect (OCI runtime specification,
// config-linux.md, masked and read-only paths). Those that a kernel lacks are passed over.
type kernelPath struct {
	path string
	dir  bool
	how  protection
}

var kernelPaths = [...]kernelPath{
	{"/proc/sys", true, readOnly}, {"/proc/sysrq-trigger", false, readOnly}, {"/proc/irq", true, readOnly},
	{"/proc/bus", true, readOnly}, {"/proc/fs", true, readOnly},
	{"/proc/kcore", false, hidden}, {"/proc/keys", false, hidden}, {"/proc/key-users", false, hidden},
	{"/proc/kmsg", false, hidden}, {"/proc/timer_list", false, hidden}, {"/proc/latency_stats", false, hidden},
	{"/proc/sched_debug", false, hidden}, {"/proc/kallsyms", false, hidden}, {"/proc/acpi", true, hidden},
	{"/proc/scsi", true, hidden}, {"/proc/asound", true, hidden}, {"/proc/driver", true, hidden}, {"/proc/mtrr", false, hidden},
	{"/sys/firmware", true, hidden}, {"/sys/kernel/debug", true, hidden}, {"/sys/kernel/tracing", true, hidden},
	{"/sys/kernel/security", true, hidden}, {"/sys/devices/virtual/powercap", true, hidden},
}

// SystemMount is one line of what a sandbox always has, for `srt explain`.
type SystemMount struct{ Kind, Path, Why string }

// SystemMounts lists the private /dev and /proc and the protected kernel paths, in the order they are put in place.
func SystemMounts() []SystemMount {
	list := []SystemMount{
		{"private", "/dev", "own devices null, zero, full, random, urandom, tty (FS-47)"},
		{"private", "/dev/pts", "own terminals (FS-47)"},
		{"private", "/dev/shm", "in memory, bounded (FS-47)"},
		{"private", "/proc", "of the sandbox's own pid namespace (FS-47)"},
	}
	for _, k := range kernelPaths {
		kind := ReadOnly.String()
		if k.how == hidden {
			kind = HideFile.String()
			if k.dir {
				kind = EmptyDir.String()
			}
		}
		list = append(list, SystemMount{kind, k.path, "kernel state, which user id 0 could read or change"})
	}
	return append(list, SystemMount{ReadOnly.String(), "/sys", "kernel state (FS-47)"})
}
