package relay

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spliceFrom is the number of waiting bytes from which splice(2) pays: below it, one read and one write through a buffer
// cost less than taking a pipe and moving pages through it.
const spliceFrom = 16 << 10

// pump moves bytes from src to dst until the end of src (nil) or an error, a *writeError if it is dst's.
//
// It takes a buffer only once there are bytes to read, and a pipe only once there are many: io.Copy alone would take a
// pipe for splice before it waits, so that every idle direction would hold two descriptors and the kernel's pipe buffers.
// A read that fills its buffer is the sign of a bulk transfer, which is spliced until little is waiting.
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
	for bulk := false; ; {
		n := 0
		if bulk {
			n, err = waitReadable(raw)
		}
		switch {
		case err != nil:
		case n >= spliceFrom:
			err = spliceN(tcp, src, n)
		default:
			n, err = copyWaiting(dst, raw)
			bulk = tcp != nil && n == bufferSize
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// copyWaiting waits for bytes, reads once and writes what it got. io.EOF is the end of src.
func copyWaiting(dst net.Conn, raw syscall.RawConn) (n int, err error) {
	var buf *[bufferSize]byte
	var readErr error
	err = raw.Read(func(fd uintptr) bool {
		buf = buffers.Get().(*[bufferSize]byte)
		n, readErr = unix.Read(int(fd), buf[:])
		if errors.Is(readErr, unix.EAGAIN) || errors.Is(readErr, unix.EINTR) {
			buffers.Put(buf)
			buf = nil
			return false
		}
		return true
	})
	if buf != nil {
		defer buffers.Put(buf)
	}
	switch {
	case err != nil:
		return 0, err
	case readErr != nil:
		return 0, readErr
	case n == 0:
		return 0, io.EOF
	}
	if _, err := dst.Write(buf[:n]); err != nil {
		return n, &writeError{err}
	}
	return n, nil
}

// spliceN moves n bytes, which are known to be waiting, by splice(2): (*net.TCPConn).ReadFrom uses it if src is a
// *net.TCPConn or a stream *net.UnixConn, bare or in one io.LimitedReader, and nothing else.
func spliceN(dst *net.TCPConn, src net.Conn, n int) error {
	if _, err := dst.ReadFrom(&io.LimitedReader{R: src, N: int64(n)}); err != nil {
		// splice does not tell which end failed. With bytes waiting it is dst; if it was src, waitGone sees that.
		return &writeError{err}
	}
	return nil
}

// waitReadable waits, by FIONREAD (which Linux also calls TIOCINQ, tcp(7) and unix(7)), until bytes are waiting and
// returns how many, or 0 at the end of input or if an error is pending: the next read tells which.
func waitReadable(raw syscall.RawConn) (n int, err error) {
	err = raw.Read(func(fd uintptr) bool {
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

// What finds a TCP peer that has closed its socket after it ended its sending, and sends nothing by itself any more: probes
// that a kernel without the socket answers with a reset. It still has it for tcp_fin_timeout (60 s, tcp(7)) after the close.
var gone = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 10 * time.Second, Count: 6}

func probe(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(gone)
	}
}

// waitGone waits until the peer of c, which has ended its sending, can not receive any more either, or until c is closed
// here, and reports true. A peer that sends nothing by itself any more is found by probes (see Abandoned).
func waitGone(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	_ = raw.Read(dead)
	return true
}

// isGone reports whether the peer of c can neither send nor receive any more, or c is closed here.
func isGone(c net.Conn) (is bool) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	return err != nil || raw.Control(func(fd uintptr) { is = dead(fd) }) != nil || is
}

// dead reports whether a socket is shut down both ways or has failed (poll(2)).
func dead(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd)}}
	_, err := unix.Poll(fds[:], 0)
	return err == nil && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

// waiting is what can still be read from one connection and what has been written to the other and has not arrived.
func waiting(from, to net.Conn) int { return queued(from, unix.TIOCINQ) + queued(to, unix.TIOCOUTQ) }

// Unsent is how many of the bytes written to a connection its peer has not taken yet, 0 if that cannot be told.
func Unsent(c net.Conn) int { return queued(c, unix.TIOCOUTQ) }

// queued asks for the length of a queue of a socket, 0 if there is none (tcp(7), unix(7)).
func queued(c net.Conn, queue uint) (n int) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), queue) })
	if err != nil {
		return 0
	}
	return n
}

// Quiet reports whether nothing is waiting to be read from an idle connection and its peer has not ended it. It does
// not block and reads nothing.
func Quiet(c net.Conn) bool {
	_, err := peek(c)
	return errors.Is(err, unix.EAGAIN)
}

// Ended reports whether the peer has ended its sending, or the connection, and everything before that has been read. It
// does not block and reads nothing. False also means that it cannot be told.
func Ended(c net.Conn) bool {
	n, err := peek(c)
	return n == 0 && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, errors.ErrUnsupported)
}

// peek looks at the next byte without waiting for it or taking it.
func peek(c net.Conn) (n int, err error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, err
	}
	var b [1]byte
	readErr := raw.Read(func(fd uintptr) bool {
		n, _, err = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return true
	})
	if readErr != nil {
		return 0, readErr
	}
	return max(n, 0), err
}
