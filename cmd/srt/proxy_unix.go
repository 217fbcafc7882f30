//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// proxyFiles is what was handed over by descriptor; what was not is nil. Each descriptor has one owner from here on and is
// closed when srt executes another program.
type proxyFiles struct {
	listener net.Listener
	link     io.ReadWriteCloser
	lifeline *os.File
	ca       *os.File
}

// fdUse is what a descriptor is for.
type fdUse struct {
	option      string
	fd          int
	in, out     bool // it is read from, written to
	listening   bool
	anyReadable bool // a file or a terminal will do, too
}

// uses lists the descriptors that were given.
func (o *proxyOptions) uses() []fdUse {
	var out []fdUse
	for _, u := range []fdUse{
		{option: "--listen-fd", fd: o.listenFD, listening: true},
		{option: "--decider-fd", fd: o.deciderFD, in: true, out: true},
		{option: "--decider-in", fd: o.deciderIn, in: true},
		{option: "--decider-out", fd: o.deciderOut, out: true},
		{option: "--lifeline-fd", fd: o.lifelineFD, in: true},
		{option: "--ca-fd", fd: o.caFD, in: true, anyReadable: true},
	} {
		if u.fd != noFD {
			out = append(out, u)
		}
	}
	return out
}

// openProxyFiles takes over the descriptors. All are looked at before srt opens anything itself, which could get the number
// of one that was not handed over (PRX-3).
//
// No core file is written from here on: it would hold the key of the authority and credentials (PRX-8).
func openProxyFiles(o *proxyOptions) (*proxyFiles, error) {
	if err := withoutCore(); err != nil {
		return nil, fmt.Errorf("core files cannot be turned off, and would hold credentials: %w", err)
	}
	uses := o.uses()
	for _, u := range uses {
		if reason := u.unusable(); reason != "" {
			return nil, fmt.Errorf("%s %d is not usable: %s", u.option, u.fd, reason)
		}
	}
	taken := map[string]*os.File{}
	for _, u := range uses {
		f, err := u.take()
		if err != nil {
			return nil, fmt.Errorf("%s %d is not usable: %w", u.option, u.fd, err)
		}
		taken[u.option] = f
	}
	files := &proxyFiles{lifeline: taken["--lifeline-fd"], ca: taken["--ca-fd"]}
	if f := taken["--listen-fd"]; f != nil {
		ln, err := net.FileListener(f) // of a descriptor of its own; the path of a Unix socket is left alone (PRX-6)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("--listen-fd %d is not usable: %w", o.listenFD, err)
		}
		files.listener = ln
	}
	if f := taken["--decider-fd"]; f != nil {
		files.link = f
		return files, nil
	}
	files.link = newTwoWay(taken["--decider-in"], taken["--decider-out"])
	return files, nil
}

// unusable says why a descriptor cannot be what it is for; nothing if it can. It changes nothing.
func (u fdUse) unusable() string {
	var st unix.Stat_t
	flags, err := unix.FcntlInt(uintptr(u.fd), unix.F_GETFD, 0)
	if err == nil && flags&unix.FD_CLOEXEC != 0 {
		err = unix.EBADF // no program begins with such a descriptor: this one is srt's own
	}
	if err == nil {
		err = unix.Fstat(u.fd, &st)
	}
	if err == nil {
		flags, err = unix.FcntlInt(uintptr(u.fd), unix.F_GETFL, 0)
	}
	mode, kind := flags&unix.O_ACCMODE, st.Mode&unix.S_IFMT
	switch {
	case errors.Is(err, unix.EBADF):
		return "it is not open (EBADF)"
	case err != nil:
		return errnoName(err)
	case kind == unix.S_IFSOCK:
		return u.unusableSocket()
	case u.listening:
		return "it is not a socket"
	case u.in && u.out:
		return "it is not a socket; two pipes go by --decider-in and --decider-out"
	case kind != unix.S_IFIFO && (!u.anyReadable || kind == unix.S_IFDIR):
		return "it is neither a socket nor a pipe"
	case u.in && mode == unix.O_WRONLY:
		return "it is open for writing only"
	case u.out && mode == unix.O_RDONLY:
		return "it is open for reading only"
	}
	return ""
}

func (u fdUse) unusableSocket() string {
	kind, err := unix.GetsockoptInt(u.fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return errnoName(err)
	}
	accepts, err := unix.GetsockoptInt(u.fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	listening := err == nil && accepts != 0
	switch {
	case kind != unix.SOCK_STREAM:
		return "it is not a stream socket"
	case listening && !u.listening:
		return "it is a socket that listens; hand over a connection"
	case !u.listening:
		return ""
	case !listening:
		return "it is a socket that does not listen"
	}
	switch name, err := unix.Getsockname(u.fd); name.(type) {
	case *unix.SockaddrInet4, *unix.SockaddrInet6, *unix.SockaddrUnix:
		return ""
	default:
		if err != nil {
			return errnoName(err)
		}
	}
	return "it is neither a TCP nor a Unix socket"
}

// take makes a file of a descriptor, which nothing else closes from then on. The standard streams are left open: package os
// has them too.
func (u fdUse) take() (*os.File, error) {
	fd := u.fd
	if fd < 3 {
		var err error
		if fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err != nil {
			return nil, err
		}
	}
	unix.CloseOnExec(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	// What can be waited for does not block, so that closing it ends a read. A terminal would stay so for whoever has it.
	if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFSOCK || kind == unix.S_IFIFO {
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, err
		}
	}
	return os.NewFile(uintptr(fd), u.option), nil
}

// twoWay is the link over two descriptors.
type twoWay struct {
	in, out *os.File
	gone    chan struct{} // closed when nobody reads out any more
}

func newTwoWay(in, out *os.File) *twoWay {
	t := &twoWay{in: in, out: out, gone: make(chan struct{})}
	go t.watch()
	return t
}

// watch waits for the other end of out to be closed. On a pipe nothing is ever to be read there, so that what wakes the
// waiting is its end (poll(2): POLLERR, for a socket POLLHUP).
func (t *twoWay) watch() {
	raw, err := t.out.SyscallConn()
	if err != nil {
		return // the next write tells
	}
	closed := false
	err = raw.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(fds, 0)
		closed = err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		return closed
	})
	if err == nil && closed {
		close(t.gone)
	}
}

// OutputClosed is closed when the decider does not read any more.
func (t *twoWay) OutputClosed() <-chan struct{} { return t.gone }

// Read reads what the decider wrote.
func (t *twoWay) Read(p []byte) (int, error) { return t.in.Read(p) }

// Write writes to the decider.
func (t *twoWay) Write(p []byte) (int, error) { return t.out.Write(p) }

// Close closes both descriptors.
func (t *twoWay) Close() error { return errors.Join(t.in.Close(), t.out.Close()) }
