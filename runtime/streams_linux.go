package runtime

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
)

// streamIndex is where a re-opened standard stream arrives in ns.Process.Files, after the listeners.
const streamIndex = maxListeners

// StreamError is a standard stream that would lead the command out of the sandbox. The command was not started.
type StreamError struct {
	Stream string // "standard input", "standard output" or "standard error"
	Reason string // what it is and what to do
}

func (e *StreamError) Error() string { return e.Stream + " " + e.Reason }

// chooseStreams decides which standard streams the sandbox opens again through its own view (FS-46). A descriptor of the
// caller's belongs to the host's mounts: through one of a directory everything beneath it can be reached, and through
// one of a file that was opened for reading the owner can still change mode, times and attributes. It refuses streams
// that would be a way around the policy (*StreamError).
//
// Other files opened for writing, pipes, connected Unix sockets and terminals stay as they are: the caller gave them to
// be written to.
func (l *launch) chooseStreams(files [3]*os.File) error {
	for fd, f := range files {
		o, err := inspectStream(fd, int(f.Fd()))
		if err != nil {
			return err
		}
		if err := o.refuseSocket(); err != nil {
			return err
		}
		if l.plan.Unrestricted {
			continue
		}
		if err := o.refuseHidden(l.plan); err != nil {
			return err
		}
		s, err := o.reopen()
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

// openStream is a standard stream as the caller opened it.
type openStream struct {
	target, fd int
	st         unix.Stat_t
	flags      int    // access mode and status flags (F_GETFL)
	path       string // what /proc says it is: an absolute path for what has a name
}

func inspectStream(target, fd int) (*openStream, error) {
	o := &openStream{target: target, fd: fd}
	err := unix.Fstat(fd, &o.st)
	if err == nil {
		o.flags, err = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	}
	if err == nil {
		o.path, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", streamNames[target], err)
	}
	return o, nil
}

func (o *openStream) is(kind uint32) bool { return o.st.Mode&unix.S_IFMT == kind }

func (o *openStream) accessMode() int { return o.flags & unix.O_ACCMODE }

// refuseSocket refuses every socket that can be turned to another peer: it belongs to the host's network namespace, or
// reaches any path, whatever the sandbox allows. A connected Unix stream keeps its peer for good (unix(7)); TCP can be
// disconnected and connected elsewhere (connect(2), AF_UNSPEC).
func (o *openStream) refuseSocket() error {
	if !o.is(unix.S_IFSOCK) {
		return nil
	}
	family, err := unix.GetsockoptInt(o.fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err == nil && family == unix.AF_UNIX {
		kind, kindErr := unix.GetsockoptInt(o.fd, unix.SOL_SOCKET, unix.SO_TYPE)
		_, peerErr := unix.Getpeername(o.fd)
		if kindErr == nil && peerErr == nil && (kind == unix.SOCK_STREAM || kind == unix.SOCK_SEQPACKET) {
			return nil
		}
	}
	return &StreamError{streamNames[o.target], "is a socket that the command could connect to any other peer, past the network rules. " +
		"Put a pipe between them (cat | srt ... | cat); only connected Unix stream sockets are passed on"}
}

// refuseHidden refuses a file that is only written to and that the settings hide while it holds something: opened again
// through /proc/self/fd it could be read.
func (o *openStream) refuseHidden(plan *fsview.Plan) error {
	if !o.is(unix.S_IFREG) || o.accessMode() != unix.O_WRONLY || o.st.Size == 0 || !plan.Hides(o.path) {
		return nil
	}
	return &StreamError{streamNames[o.target], fmt.Sprintf("is %q, which the settings hide and which the command could read back. "+
		"Put a pipe between them (srt ... | cat >> file), or take the file out of what is hidden", o.path)}
}

// reopen describes how the sandbox opens the stream again, nil if it stays as it is.
func (o *openStream) reopen() (*ns.Stream, error) {
	s := &ns.Stream{FD: o.target, Path: o.path, Flags: o.flags &^ unix.O_LARGEFILE, Dev: o.st.Dev, Ino: o.st.Ino, Index: -1}
	reading := o.accessMode() == unix.O_RDONLY && o.st.Nlink > 0 && strings.HasPrefix(o.path, "/")
	switch {
	case o.is(unix.S_IFDIR):
		return s, nil
	case o.is(unix.S_IFCHR):
		return o.reopenDevice(s)
	case o.is(unix.S_IFIFO) && reading:
		s.FIFO = true
		return s, nil
	case o.is(unix.S_IFREG) && reading && !ownedByKernel(o.path):
		var err error
		if s.Offset, err = unix.Seek(o.fd, 0, 1); err != nil {
			return nil, fmt.Errorf("%s: %w", streamNames[o.target], err)
		}
		s.Index = streamIndex + o.target
		return s, nil
	}
	return nil, nil
}

// reopenDevice replaces the devices that hold nothing, such as /dev/null, by the sandbox's own, which are read-only
// mounts: through the host's, a command of root could change the mode and owner that every process of the host depends on.
func (o *openStream) reopenDevice(s *ns.Stream) (*ns.Stream, error) {
	path, ok := fsview.MemoryDevice(unix.Major(o.st.Rdev), unix.Minor(o.st.Rdev))
	if !ok {
		return nil, nil
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", streamNames[o.target], path, err)
	}
	s.Path, s.Dev, s.Ino = path, st.Dev, st.Ino
	return s, nil
}

// ownedByKernel tells whether a path lies in one of the trees that a sandbox has its own of, where a file of the host's
// has no counterpart.
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
			_, _ = unix.Seek(int(original[s.FD].Fd()), off, 0) // it was a seekable file when the command started
		}
	}
}
