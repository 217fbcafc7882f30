package runtime

import (
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/bpf"
)

// resolveCached is RESOLVE_CACHED of openat2(2), Linux 5.12.
const resolveCached = 0x20

// maxResolved is how many names of a path are tried.
const maxResolved = 256

// inside resolves paths as a sandbox sees them: in its root directory and its mounts, without ever leaving them or waiting
// for a disk (RESOLVE_CACHED in openat2(2)): the kernel has just walked the same way for the command. It opens nothing: a
// place is found, and asked for its name.
type inside struct{ root *os.File }

// resolve is the absolute path that a call was about, without links as far as they are followed. What cannot be looked up,
// since it does not exist, is not in memory, or has a link of /proc in it, stays as it was spelled.
func (in inside) resolve(p bpf.TracedPath) string {
	if p.Text == "" {
		return p.Dir
	}
	full := p.Dir + "/" + p.Text
	trimmed := strings.TrimRight(full, "/")
	if last := trimmed[strings.LastIndexByte(trimmed, '/')+1:]; p.Follow || trimmed != full || last == "." || last == ".." {
		return in.place(trimmed, maxResolved)
	}
	return in.entry(trimmed, maxResolved)
}

// place is where a path leads.
func (in inside) place(full string, left int) string {
	if found, ok := in.find(full); ok {
		return found
	}
	return in.entry(full, left-1)
}

// entry is the name that a path ends in, in the directory that the rest of it leads to.
func (in inside) entry(full string, left int) string {
	full = strings.TrimRight(full, "/")
	cut := strings.LastIndexByte(full, '/')
	if left <= 0 || cut <= 0 {
		return path.Clean("/" + full)
	}
	return path.Join(in.place(full[:cut], left), full[cut+1:])
}

// find asks the kernel where a path leads.
func (in inside) find(full string) (string, bool) {
	fd, err := unix.Openat2(int(in.root.Fd()), full, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | resolveCached})
	runtime.KeepAlive(in.root)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	found, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil || !strings.HasPrefix(found, "/") {
		return "", false
	}
	return found, true
}
