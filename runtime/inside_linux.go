package runtime

import (
	"errors"
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

// maxResolved is how often the kernel is asked about one path.
const maxResolved = 256

// inside resolves paths as a sandbox sees them: in its root directory and its mounts, without ever leaving them or waiting
// for a disk (RESOLVE_CACHED in openat2(2)): the kernel has just walked the same way for the command. It opens nothing: a
// place is found, and asked for its name.
type inside struct {
	root *os.File // O_PATH
	name func(fd int) (string, bool)
}

// resolve is the absolute path that a call was about, without links as far as they are followed, also where they lead to
// what the sandbox does not see. What cannot be looked up, since it is not in memory or has a link of /proc in it, stays as
// it was spelled.
func (in inside) resolve(p bpf.TracedPath) string {
	if p.Text == "" {
		return p.Dir
	}
	r := resolution{inside: in, left: maxResolved}
	full := p.Dir + "/" + p.Text
	trimmed := strings.TrimRight(full, "/")
	if last := trimmed[strings.LastIndexByte(trimmed, '/')+1:]; p.Follow || trimmed != full || last == "." || last == ".." {
		return r.bounded(r.place(trimmed), p)
	}
	return r.bounded(r.entry(trimmed), p)
}

// resolution is the resolving of one path. left bounds all that is done for it: links can be made to lead anywhere.
type resolution struct {
	inside
	left  int
	steps int // how many changes are looked at, where there is a past
	past  *past
	// visited are the names that walk went through, nil where nobody asks.
	visited map[string]struct{}
}

// bounded is what was found, or the path as it was spelled where the links in it were too many.
func (r *resolution) bounded(found string, p bpf.TracedPath) string {
	if r.left < 0 {
		return p.Path()
	}
	return found
}

// place is where a path leads. Where the kernel finds nothing there, or would have to note the time at which a link was
// followed, links are followed here, one by one.
func (r *resolution) place(full string) string {
	if found, ok := r.find(full, 0, r.name); ok {
		return found
	}
	entry := r.entry(full)
	if strings.HasPrefix(entry, "/proc/") {
		return entry // what its links say is not where they lead
	}
	target, ok := r.find(entry, unix.O_NOFOLLOW, linkTarget)
	if !ok || target == "" {
		return entry
	}
	if target[0] != '/' {
		target = path.Dir(entry) + "/" + target
	}
	return r.place(strings.TrimRight(target, "/"))
}

// entry is the name that a path ends in, in the directory that the rest of it leads to.
func (r *resolution) entry(full string) string {
	full = strings.TrimRight(full, "/")
	cut := strings.LastIndexByte(full, '/')
	if r.left <= 0 || cut <= 0 {
		return path.Clean("/" + full)
	}
	return path.Join(r.place(full[:cut]), full[cut+1:])
}

// find asks the kernel where a path leads, and asks what it finds there.
func (r *resolution) find(full string, flags uint64, ask func(fd int) (string, bool)) (string, bool) {
	fd, err := r.open(full, flags, unix.RESOLVE_NO_MAGICLINKS)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	return ask(fd)
}

// open finds what a path leads to, for asking alone (O_PATH).
func (r *resolution) open(full string, flags, resolve uint64) (int, error) {
	if r.left--; r.left < 0 {
		return -1, unix.ELOOP
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: unix.RESOLVE_IN_ROOT | resolveCached | resolve}
	fd, err := unix.Openat2(int(r.root.Fd()), full, &how)
	for range 2 {
		if !errors.Is(err, unix.EAGAIN) {
			break
		}
		fd, err = unix.Openat2(int(r.root.Fd()), full, &how) // a mount or a rename anywhere on the host came in between
	}
	runtime.KeepAlive(r.root)
	return fd, err
}

// look is what lies at a location without links. What is not in memory is taken for something that leads nowhere else.
func (r *resolution) look(location string) (target string, found seen) {
	fd, err := r.open(location, unix.O_NOFOLLOW, unix.RESOLVE_NO_SYMLINKS)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return "", seenNothing
	case errors.Is(err, unix.ELOOP):
		return "", seenUnknown // links have come into the way, and the journal does not tell how
	case err != nil:
		return "", seenOther
	}
	defer unix.Close(fd)
	if target, ok := linkTarget(fd); ok && target != "" {
		return target, seenLink
	}
	return "", seenOther
}

// nameOf is the path of what a descriptor stands for, in its own mounts.
func nameOf(fd int) (string, bool) {
	found, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	return found, err == nil && strings.HasPrefix(found, "/")
}

// linkTarget is what a symbolic link says, if a descriptor is of one.
func linkTarget(fd int) (string, bool) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", b)
	return string(b[:max(n, 0)]), err == nil
}
