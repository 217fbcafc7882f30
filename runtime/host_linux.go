package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/seccomp"
)

// host is what the sandbox needs to know of the system it runs on.
type host struct {
	uid, gid     int
	uids, gids   []ns.IDMap
	mapsAll      bool // every id of the surrounding user namespace is mapped
	landlockABI  int
	kernelMounts []string // see isKernelMount
	mounts       []fsview.Mount
	mountMax     int
	cgroupNS     bool
	procNames    []string // names in /proc that are not of processes
	procEntries  []string // the same for root, nil for others
}

// landlockABI is asked once: it does not change while the kernel runs.
func landlockABI() (int, error) {
	r := probe.Landlock.Probe()
	return r.Value, r.Err
}

// checkPlatform says whether commands can be confined here at all. What only shows when namespaces are made is reported
// by the first launch.
func checkPlatform() error {
	if err := seccomp.Supported(); err != nil {
		return err
	}
	if _, err := probe.Forced(); err != nil {
		return err
	}
	abi, err := landlockABI()
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("Landlock is not available (%w). It is the second wall of every sandbox. In a container its system call filter has to "+
			"allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self, as the default ones of current engines do "+
			"(docker run --security-opt seccomp=unconfined allows all)", err)
	case err != nil:
		return fmt.Errorf("Landlock is not available (%w). It is the second wall of every sandbox: a kernel of 5.19 or later with "+
			"CONFIG_SECURITY_LANDLOCK, and \"landlock\" in the boot parameter lsm=, is needed. A sandbox around this "+
			"process that performs its system calls, such as srt's, refuses Landlock too: srt runs inside that one only where its settings have allowNestedUserNamespaces", err)
	case abi < fsview.MinLandlockABI:
		return fmt.Errorf("Landlock has ABI version %d here, and at least %d is needed (Linux 5.19)", abi, fsview.MinLandlockABI)
	}
	_, err = chooseMode(true) // per command, settings may allow more than the session's
	return err
}

// readIdentity asks what the new process is made with. It may change between launches.
func readIdentity() (host, error) {
	h := host{uid: os.Geteuid(), gid: os.Getegid()}
	h.cgroupNS = hasCgroupNamespaces()
	return h, h.chooseMaps()
}

// hasCgroupNamespaces tells whether to ask for one. What else may refuse it shows when a start has failed.
func hasCgroupNamespaces() bool {
	if fullRefused.Load() {
		return probe.CgroupNamespace.Probe().Present()
	}
	_, err := os.Lstat("/proc/self/ns/cgroup")
	return err == nil && probe.CgroupNamespace.Withheld() == nil
}

// readSystem asks the rest.
func (h *host) readSystem() error {
	var err error
	if h.landlockABI, err = landlockABI(); err != nil {
		return err
	}
	if err := h.readMounts(); err != nil {
		return err
	}
	if text, err := os.ReadFile("/proc/sys/fs/mount-max"); err == nil {
		h.mountMax, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if h.procNames, err = fsview.ProcEntries(); err != nil {
		return fmt.Errorf("list /proc: %w", err)
	}
	if h.uid == 0 {
		h.procEntries = h.procNames
	}
	return nil
}

// chooseMaps decides the identities of the user namespace: every id for root, who may map them, else the caller's own
// (docs/architecture.md, FS-48).
func (h *host) chooseMaps() error {
	h.mapsAll = h.uid == 0 && mayMapIDs()
	if !h.mapsAll {
		h.uids = []ns.IDMap{{Inside: uint32(h.uid), Outside: uint32(h.uid), Count: 1}}
		h.gids = []ns.IDMap{{Inside: uint32(h.gid), Outside: uint32(h.gid), Count: 1}}
		return nil
	}
	maps, err := ownMaps()
	h.uids, h.gids = maps[0], maps[1]
	return err
}

// ownMaps are the maps of the surrounding user namespace, users and groups. They are written once, and no process of several
// threads can change its user namespace (user_namespaces(7), setns(2)).
var ownMaps = sync.OnceValues(func() (maps [2][]ns.IDMap, err error) {
	if maps[0], err = readMap("/proc/self/uid_map"); err == nil {
		maps[1], err = readMap("/proc/self/gid_map")
	}
	return maps, err
})

// ttyGroup is the group of terminals (Documentation/filesystems/devpts.rst; group "tty" everywhere).
const ttyGroup = 5

// mapsTTYGroup tells whether that group exists in the sandbox: in a container of one id, root maps all there is, which is
// itself.
func (h *host) mapsTTYGroup() bool {
	for _, m := range h.gids {
		if m.Inside <= ttyGroup && ttyGroup-m.Inside < m.Count {
			return true
		}
	}
	return false
}

// mayMapIDs tells whether this process has the capabilities that mapping more than its own id takes
// (user_namespaces(7)).
func mayMapIDs() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&head, &data[0]) != nil {
		return false
	}
	const need = uint32(1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETFCAP)
	return data[0].Effective&need == need
}

// readMap turns the surrounding user namespace's own map into one that maps every id there to itself.
func readMap(path string) ([]ns.IDMap, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var maps []ns.IDMap
	for line := range strings.Lines(string(text)) {
		var inside, outside, count uint32
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, line, err)
		}
		maps = append(maps, ns.IDMap{Inside: inside, Outside: inside, Count: count})
	}
	return maps, nil
}

// mountList is what a text of /proc/self/mountinfo says. It is not changed once it is made.
type mountList struct {
	text         []byte
	mounts       []fsview.Mount
	kernelMounts []string // see isKernelMount
}

// lastMounts is what was read last. A text that is the same says the same.
var lastMounts atomic.Pointer[mountList]

// readMounts reads the mounts and finds those of the kernel's own file systems that lie elsewhere.
func (h *host) readMounts() error {
	buf := textBuffers.Get().(*[]byte)
	defer textBuffers.Put(buf)
	text, err := readText("/proc/self/mountinfo", (*buf)[:0])
	if err != nil {
		return err
	}
	*buf = text
	l := lastMounts.Load()
	if l == nil || !bytes.Equal(l.text, text) {
		if l, err = newMountList(bytes.Clone(text)); err != nil {
			return fmt.Errorf("/proc/self/mountinfo: %w", err)
		}
		lastMounts.Store(l)
	}
	h.mounts, h.kernelMounts = l.mounts, l.kernelMounts
	return nil
}

func newMountList(text []byte) (*mountList, error) {
	l := &mountList{text: text}
	var kinds []string
	var err error
	if l.mounts, kinds, err = parseMounts(string(text)); err != nil {
		return nil, err
	}
	for i, m := range l.mounts {
		if isKernelMount(m.Point, kinds[i]) {
			l.kernelMounts = append(l.kernelMounts, m.Point)
		}
	}
	return l, nil
}

// textBuffers are for readText: the kernel gives a list page by page, for as much room as there is.
var textBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 16<<10); return &b }}

// readText reads a file of /proc whole and appends it to buf. Package os would watch for its changes.
func readText(path string, buf []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	for {
		buf = slices.Grow(buf, 4<<10)
		n, err := unix.Read(fd, buf[len(buf):cap(buf)])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return buf, nil
		default:
			buf = buf[:len(buf)+n]
		}
	}
}

// isKernelMount tells whether a mount shows the host's processes, or kernel state that user id 0 may change or look into,
// where the sandbox's own /proc, /dev and protected /sys do not cover it.
func isKernelMount(point, kind string) bool {
	switch kind {
	case "proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "selinuxfs", "bpf", "configfs", "efivarfs", "pstore",
		"binfmt_misc", "fusectl", "nfsd":
		return !policy.Covers("/proc", point) && !policy.Covers("/sys", point) && !policy.Covers("/dev", point)
	}
	return false
}

// parseMounts reads mountinfo (proc_pid_mountinfo(5)): each mount, and the type of its file system.
func parseMounts(text string) (mounts []fsview.Mount, kinds []string, err error) {
	n := strings.Count(text, "\n")
	mounts, kinds = make([]fsview.Mount, 0, n), make([]string, 0, n)
	for line := range strings.Lines(text) {
		var f [5]string // ID, parent, major:minor, root, mount point
		rest, found := line, false
		for i := range f {
			if f[i], rest, found = strings.Cut(rest, " "); !found {
				return nil, nil, fmt.Errorf("%w: %q", errMountLine, line)
			}
		}
		_, after, found := strings.Cut(rest, " - ") // it ends the optional fields
		kind, _, typed := strings.Cut(after, " ")
		id, err1 := strconv.Atoi(f[0])
		parent, err2 := strconv.Atoi(f[1])
		major, minor, numbers := strings.Cut(f[2], ":")
		high, err3 := strconv.ParseUint(major, 10, 32)
		low, err4 := strconv.ParseUint(minor, 10, 32)
		if !found || !typed || !numbers || errors.Join(err1, err2, err3, err4) != nil || !strings.HasPrefix(f[4], "/") {
			return nil, nil, fmt.Errorf("%w: %q", errMountLine, line)
		}
		mounts = append(mounts, fsview.Mount{ID: id, Parent: parent, Dev: high<<32 | low, Root: unescapeMount(f[3]), Point: unescapeMount(f[4])})
		kinds = append(kinds, kind)
	}
	return mounts, kinds, nil
}

// errMountLine is a line of mountinfo of an unknown form.
var errMountLine = errors.New("a line is not understood")

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// lacks tells that the kernel has no such path. Only a clear answer counts: a /proc that shows nothing but processes
// (subset=pid, proc(5)) says nothing of another.
func (h *host) lacks(path string) bool {
	if name, ok := strings.CutPrefix(path, "/proc/"); ok {
		return len(h.procNames) > 0 && !strings.Contains(name, "/") && !slices.Contains(h.procNames, name)
	}
	var st unix.Stat_t
	return unix.Lstat(path, &st) == unix.ENOENT
}

// backendName is what Backend gives.
const backendName = "namespaces"

// judgesLater tells whether rules hold for what comes to exist later (FS-10, FS-30, FS-55).
func judgesLater() bool { return brokerAvailable() == nil }

// insidePorts are the ports of the proxies as commands see them.
func insidePorts() (http, socks int) { return httpPort, socksPort }
