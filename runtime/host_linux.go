package runtime

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/seccomp"
)

// host is what the sandbox needs to know of the system it runs on.
type host struct {
	uid, gid    int
	uids, gids  []ns.IDMap
	mapsAll     bool // every id of the surrounding user namespace is mapped
	landlockABI int
	procMounts  []string // mounts of type proc other than /proc
	mounts      int
	mountMax    int
	cgroupNS    bool
	procEntries []string // names in /proc that are not of processes, for root alone
}

// landlockABI is asked once: it does not change while the kernel runs.
var landlockABI = sync.OnceValues(syscall.LandlockGetABIVersion)

// checkPlatform says whether commands can be confined here at all. What only shows when namespaces are made is reported
// by the first launch.
func checkPlatform() error {
	if err := seccomp.Supported(); err != nil {
		return err
	}
	abi, err := landlockABI()
	switch {
	case err != nil:
		return fmt.Errorf("Landlock is not available (%w). It is the second wall of every sandbox: a kernel of 5.19 or later with "+
			"CONFIG_SECURITY_LANDLOCK, and \"landlock\" in the boot parameter lsm=, is needed", err)
	case abi < fsview.MinLandlockABI:
		return fmt.Errorf("Landlock has ABI version %d here, and at least %d is needed (Linux 5.19)", abi, fsview.MinLandlockABI)
	}
	return nil
}

// readIdentity asks what the new process is made with. It may change between launches.
func readIdentity() (host, error) {
	h := host{uid: os.Geteuid(), gid: os.Getegid()}
	_, err := os.Lstat("/proc/self/ns/cgroup")
	h.cgroupNS = err == nil
	return h, h.chooseMaps()
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
	if h.uid == 0 {
		if h.procEntries, err = fsview.ProcEntries(); err != nil {
			return fmt.Errorf("list /proc: %w", err)
		}
	}
	return nil
}

// chooseMaps decides the identities of the user namespace: every id for root, who may map them, else the caller's own
// (design section 4, FS-48).
func (h *host) chooseMaps() error {
	h.mapsAll = h.uid == 0 && mayMapIDs()
	if !h.mapsAll {
		h.uids = []ns.IDMap{{Inside: uint32(h.uid), Outside: uint32(h.uid), Count: 1}}
		h.gids = []ns.IDMap{{Inside: uint32(h.gid), Outside: uint32(h.gid), Count: 1}}
		return nil
	}
	var err error
	if h.uids, err = readMap("/proc/self/uid_map"); err == nil {
		h.gids, err = readMap("/proc/self/gid_map")
	}
	return err
}

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

// readMounts counts the mounts and finds further ones of type proc, which would show the host's processes
// (proc_pid_mountinfo(5)).
func (h *host) readMounts() error {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	h.mounts = bytes.Count(text, []byte{'\n'})
	if bytes.Count(text, []byte(" - proc ")) <= 1 {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		f := strings.Fields(before)
		if !strings.HasPrefix(after, "proc ") || len(f) < 5 || f[4] == "/proc" || strings.HasPrefix(f[4], "/proc/") {
			continue
		}
		h.procMounts = append(h.procMounts, unescapeMount(f[4]))
	}
	return nil
}

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

// lacks tells that the kernel has no such path. Only a clear answer counts.
func lacks(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == unix.ENOENT
}
