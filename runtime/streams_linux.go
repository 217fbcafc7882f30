package runtime

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// streamIndex is where a re-opened standard stream arrives in ns.Process.Files, after the listeners.
const streamIndex = maxListeners

// chooseStreams decides which standard streams the sandbox opens again through its own view (FS-46). A descriptor of the
// caller's belongs to the host's mounts: through one of a directory everything beneath it can be reached, and through
// one of a file that was opened for reading the owner can still change mode, times and attributes.
//
// What was opened for writing, pipes, sockets and terminals stay as they are: the caller gave them to be written to.
func (l *launch) chooseStreams(files [3]*os.File) error {
	if l.plan.Unrestricted {
		return nil
	}
	for fd, f := range files {
		s, err := restrictStream(fd, int(f.Fd()))
		if err != nil {
			return err
		}
		if s != nil {
			l.streams = append(l.streams, *s)
		}
	}
	return nil
}

var streamNames = [...]string{"standard input", "standard output", "standard error"}

func restrictStream(target, fd int) (*ns.Stream, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("%s: %w", streamNames[target], err)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", streamNames[target], err)
	}
	dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	readOnlyFile := st.Mode&unix.S_IFMT == unix.S_IFREG && flags&unix.O_ACCMODE == unix.O_RDONLY && st.Nlink > 0
	if !dir && !readOnlyFile {
		return nil, nil
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", streamNames[target], err)
	}
	if !dir && (ownedByKernel(path) || !strings.HasPrefix(path, "/")) {
		return nil, nil // no owner can change these, and the sandbox has its own
	}
	s := &ns.Stream{FD: target, Path: path, Flags: flags &^ unix.O_LARGEFILE, Dev: st.Dev, Ino: st.Ino, Index: -1}
	if !dir {
		if s.Offset, err = unix.Seek(fd, 0, 1); err != nil {
			return nil, fmt.Errorf("%s: %w", streamNames[target], err)
		}
		s.Index = streamIndex + target
	}
	return s, nil
}

// ownedByKernel tells whether a path lies in one of the trees that a sandbox has its own of.
func ownedByKernel(path string) bool {
	for _, dir := range []string{"/proc/", "/sys/", "/dev/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

// returnOffsets gives the caller's descriptors the position at which the command left off, as if it had used them
// itself: a shell reads on from there.
func returnOffsets(streams []ns.Stream, received []*os.File, original [3]*os.File) {
	for _, s := range streams {
		if s.Index < 0 || s.Index >= len(received) || received[s.Index] == nil {
			continue
		}
		if off, err := received[s.Index].Seek(0, 1); err == nil {
			unix.Seek(int(original[s.FD].Fd()), off, 0)
		}
	}
}
