package relay

import (
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// spliceFrom is the number of waiting bytes from which splice(2) pays: below it, one read and one write through a pooled
// buffer cost less than taking a pipe and moving pages through it.
const spliceFrom = 16 << 10

// pump moves bytes from src to dst until the end of src (nil) or an error, a *writeError if it is dst's.
//
// It first waits for bytes and only then takes what it needs to move them. io.Copy alone would take a pipe for splice
// before it waits, so that every idle direction would hold two descriptors and the kernel's pipe buffers.
func pump(dst, src net.Conn) error {
	sc, ok := src.(syscall.Conn)
	if !ok {
		return pumpBuffered(dst, src)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	tcp, _ := dst.(*net.TCPConn)
	for {
		n, err := waitReadable(raw)
		switch {
		case err != nil:
			return err
		case tcp != nil && n >= spliceFrom:
			err = spliceN(tcp, src, int64(n))
		default:
			err = copyOnce(dst, src)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// spliceN moves n bytes, which are known to be waiting, by splice(2): (*net.TCPConn).ReadFrom uses it if src is a
// *net.TCPConn or a stream *net.UnixConn, bare or in one io.LimitedReader, and nothing else.
func spliceN(dst *net.TCPConn, src net.Conn, n int64) error {
	if _, err := dst.ReadFrom(&io.LimitedReader{R: src, N: n}); err != nil {
		// splice does not tell which end failed. With bytes waiting it is dst; if it was src, waitGone sees that.
		return &writeError{err}
	}
	return nil
}

// waitReadable waits, by FIONREAD (which Linux also calls TIOCINQ, tcp(7) and unix(7)), until bytes are waiting and returns how many, or 0 at the end of input or if an error is pending:
// the next read tells which.
func waitReadable(raw syscall.RawConn) (int, error) {
	var n int
	err := raw.Read(func(fd uintptr) bool {
		var errno error
		if n, errno = unix.IoctlGetInt(int(fd), unix.TIOCINQ); errno == nil && n > 0 {
			return true
		}
		n = 0
		var b [1]byte
		_, _, errno = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return !errors.Is(errno, unix.EAGAIN) && !errors.Is(errno, unix.EINTR)
	})
	return n, err
}

// waitGone waits until the peer of c can neither send nor receive any more, or until c is closed here, and reports true.
// A TCP peer that was killed after a half-close is found by keep-alive probes, which package net switches on.
func waitGone(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	_ = raw.Read(func(fd uintptr) bool {
		fds := [1]unix.PollFd{{Fd: int32(fd)}}
		_, err := unix.Poll(fds[:], 0)
		return err == nil && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
	return true
}

// Quiet reports whether nothing is waiting to be read from an idle connection and its peer has not ended it. It does
// not block and reads nothing.
func Quiet(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, errno := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		quiet = errors.Is(errno, unix.EAGAIN)
		return true
	})
	return err == nil && quiet
}
