package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// openDescriptor checks that fd can be a control channel and gives what reads it, and the absolute path of what it is if that
// has a name and can be opened by it. It consumes nothing and never waits (CLI-21). The descriptor stays open for as long
// as srt runs. The error is a *controlError.
func openDescriptor(fd int) (controlInput, string, error) {
	in := &descriptorInput{fd: fd}
	reason := in.inspect()
	if reason == "" {
		reason = in.refuseShared([3]int{0, 1, 2})
	}
	if reason != "" {
		return nil, "", &controlError{fd, reason}
	}
	name, err := in.name()
	if err != nil {
		return nil, "", &controlError{fd, err.Error()}
	}
	var wake [2]int
	if err := unix.Pipe2(wake[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, "", &controlError{fd, "no pipe could be made to end its reading: " + errnoText(err)}
	}
	in.wake, in.waker = wake[0], wake[1]
	return in, name, nil
}

// descriptorInput reads from a descriptor by system call: package os would make it non-blocking for everybody who has it.
type descriptorInput struct {
	fd          int
	wake, waker int // a pipe: closing waker ends the waiting
	st          unix.Stat_t
	messages    bool // a socket that keeps messages apart
	buf         []byte
}

func (in *descriptorInput) is(kind uint32) bool { return in.st.Mode&unix.S_IFMT == kind }

// controlKinds are the kinds of file that can be a channel, and what they are called.
var controlKinds = [...]struct {
	kind uint32
	name string
}{{unix.S_IFIFO, "pipe"}, {unix.S_IFSOCK, "socket"}, {unix.S_IFREG, "file"}, {unix.S_IFCHR, "terminal"}}

// inspect says why the descriptor cannot be a channel; nothing if it can (CLI-21).
func (in *descriptorInput) inspect() string {
	flags, err := unix.FcntlInt(uintptr(in.fd), unix.F_GETFD, 0)
	if err == nil && flags&unix.FD_CLOEXEC != 0 {
		// No program begins with such a descriptor: this one is srt's own, opened at a number that was free.
		err = unix.EBADF
	}
	if err == nil {
		err = unix.Fstat(in.fd, &in.st)
	}
	if err == nil {
		flags, err = unix.FcntlInt(uintptr(in.fd), unix.F_GETFL, 0)
	}
	switch {
	case errors.Is(err, unix.EBADF):
		return "it is not open (EBADF)"
	case err != nil:
		return errnoText(err)
	case in.is(unix.S_IFDIR):
		return "it is a directory (EISDIR)"
	case flags&unix.O_PATH != 0:
		return "it is not open for reading (O_PATH)"
	case flags&unix.O_ACCMODE == unix.O_WRONLY:
		return "it is open for writing only"
	case flags&unix.O_ACCMODE != unix.O_RDONLY && flags&unix.O_ACCMODE != unix.O_RDWR:
		return "it is not open for reading"
	case in.is(unix.S_IFSOCK):
		return in.inspectSocket()
	}
	for _, k := range controlKinds {
		if in.is(k.kind) {
			return ""
		}
	}
	return "it is neither a pipe, a socket, a file nor a terminal"
}

func (in *descriptorInput) inspectSocket() string {
	kind, err := unix.GetsockoptInt(in.fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return errnoText(err)
	}
	if listening, err := unix.GetsockoptInt(in.fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil && listening != 0 {
		return "it is a socket that listens; hand over a connection"
	}
	in.messages = kind != unix.SOCK_STREAM
	return ""
}

// refuseShared says which standard stream of the command is the channel too: through it the command could read what is
// meant for srt, or send settings of its own making (CLI-30). Of sockets only the same end can be told.
func (in *descriptorInput) refuseShared(streams [3]int) string {
	names := [...]string{"standard input", "standard output", "standard error"}
	for i, fd := range streams {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil {
			continue // not open
		}
		for _, k := range controlKinds {
			if in.is(k.kind) && in.sameAs(fd, &st) {
				return fmt.Sprintf("%s is the same %s, through which the command could take part in the channel; "+
					"give the command another one", names[i], k.name)
			}
		}
	}
	return ""
}

// sameAs tells whether a standard stream leads to what the channel is. Devices that are no terminals, /dev/null above all,
// pass nothing on from one to the other.
func (in *descriptorInput) sameAs(stream int, st *unix.Stat_t) bool {
	if in.is(unix.S_IFCHR) {
		mine, err := terminalOf(in.fd)
		its, itsErr := terminalOf(stream)
		return err == nil && itsErr == nil && mine == its
	}
	return st.Dev == in.st.Dev && st.Ino == in.st.Ino
}

// terminalOf is the number of a terminal, whatever name it was opened by: /dev/tty stands for any (TIOCGDEV, ioctl_tty(2)).
func terminalOf(fd int) (uint32, error) { return unix.IoctlGetUint32(fd, unix.TIOCGDEV) }

// name is the absolute path by which the channel could be opened once more, empty if there is none. The error is why the
// command could not be kept from it (CLI-30).
func (in *descriptorInput) name() (string, error) {
	switch {
	case in.is(unix.S_IFIFO), in.is(unix.S_IFREG):
		return nameOf(in.fd, &in.st)
	case in.is(unix.S_IFSOCK):
		if address, err := unix.Getsockname(in.fd); err == nil {
			if local, ok := address.(*unix.SockaddrUnix); ok {
				return absolute(local.Name), nil
			}
		}
	}
	return "", nil
}

// absolute completes the path of a bound socket; it is empty for one without a path.
func absolute(path string) string {
	if path == "" || strings.HasPrefix(path, "@") {
		return ""
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return ""
}

// errnoText is the system's description of an error with its name, as people search for it.
func errnoText(err error) string {
	if name := errnoName(err); name != err.Error() {
		return fmt.Sprintf("%v (%s)", err, name)
	}
	return err.Error()
}

// controlBuffer is what one read takes from a stream.
const controlBuffer = 64 << 10

// read is controlInput.read. It is for one goroutine.
func (in *descriptorInput) read() (data []byte, whole bool, err error) {
	if in.buf == nil {
		in.buf = make([]byte, controlBuffer)
		// What srt starts for itself has no use for the channel either. The flag is the descriptor's, not that of the open
		// file description, which is the caller's too. It is set no earlier: another option may name the same descriptor.
		unix.CloseOnExec(in.fd)
	}
	for {
		hungUp, err := in.wait()
		if err != nil {
			if errors.Is(err, errControlStopped) {
				unix.Close(in.wake)
			}
			return nil, true, err
		}
		n, whole, err := in.receive()
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			// Another process was faster, or a signal came.
		case err != nil:
			return nil, true, err
		case n > 0:
			return in.buf[:n], whole, nil
		case !in.messages, hungUp && in.drained():
			return nil, true, io.EOF
		}
	}
}

// wait waits until there is something to read and tells whether the other end has gone.
func (in *descriptorInput) wait() (hungUp bool, err error) {
	fds := []unix.PollFd{{Fd: int32(in.fd), Events: unix.POLLIN | unix.POLLRDHUP}, {Fd: int32(in.wake)}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false, err
		case fds[1].Revents != 0:
			return false, errControlStopped
		case fds[0].Revents&unix.POLLNVAL != 0:
			return false, unix.EBADF
		case fds[0].Revents != 0:
			return fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP) != 0, nil
		}
	}
}

// ready is controlInput.ready.
func (in *descriptorInput) ready() bool {
	fds := []unix.PollFd{{Fd: int32(in.fd), Events: unix.POLLIN | unix.POLLRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

// drained tells that no message waits that holds anything: an empty message reads like the end of input (recv(2)).
func (in *descriptorInput) drained() bool { // TIOCINQ is FIONREAD by another name
	waiting, err := unix.IoctlGetInt(in.fd, unix.TIOCINQ)
	return err != nil || waiting == 0
}

// receive reads once. Sockets are never waited for in here; a pipe that another process has emptied since wait said that
// there was something is, unless its owner made it non-blocking.
func (in *descriptorInput) receive() (n int, whole bool, err error) {
	if !in.is(unix.S_IFSOCK) {
		n, err = unix.Read(in.fd, in.buf)
		return n, true, err
	}
	if in.messages {
		if err := in.makeRoom(); err != nil {
			return 0, true, err
		}
	}
	n, _, flags, _, err := unix.Recvmsg(in.fd, in.buf, nil, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	return n, flags&unix.MSG_TRUNC == 0, err
}

// makeRoom grows the buffer for the next message, which is read at once or cut (CLI-21). What is longer than any
// configuration is cut.
func (in *descriptorInput) makeRoom() error {
	size, _, _, _, err := unix.Recvmsg(in.fd, in.buf[:1], nil, unix.MSG_DONTWAIT|unix.MSG_PEEK|unix.MSG_TRUNC|unix.MSG_CMSG_CLOEXEC)
	if size = min(size, maxControlLine+2); err == nil && size > len(in.buf) {
		in.buf = make([]byte, size)
	}
	return err
}

// stop is controlInput.stop.
func (in *descriptorInput) stop() { unix.Close(in.waker) }
