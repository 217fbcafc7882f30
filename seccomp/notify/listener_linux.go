package notify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var (
	// ErrGone says that no process of the filter lives any more: nothing will be received again. Before Linux 6.11 one that has
	// ended counts until it is reaped.
	ErrGone = errors.New("every process under the system call filter has ended")
	// ErrCallEnded says that a call does not wait any longer: its caller died, or a signal interrupted the call before it
	// was received. What was read from that caller's memory may be another process's.
	ErrCallEnded = errors.New("the system call has ended before it was answered")
	// ErrStopped says that Listener.Stop was called.
	ErrStopped = errors.New("the listener of the system call filter was stopped")
)

// Listener receives and answers the calls that a filter puts to it. Its methods may be called by any number of
// goroutines at once.
type Listener struct {
	file *os.File
	fd   int
	stop int // eventfd, readable once stopped

	// receiving is held around poll and receive: a second receiver that polled the same call would then wait in
	// SECCOMP_IOCTL_NOTIF_RECV, where kernels before 6.11 leave it for ever when the last process ends.
	receiving sync.Mutex
}

// New takes over a listener descriptor. Where the kernel can (Linux 6.6), it makes caller and receiver wake each other
// on one processor, since one of them always waits for the other (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP). After an error the
// descriptor is still the caller's.
func New(file *os.File) (*Listener, error) {
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make an event descriptor for the system call filter's listener: %w", err)
	}
	l := &Listener{file: file, fd: int(file.Fd()), stop: stop}
	if err := l.setFlags(unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP); err != nil && !errors.Is(err, unix.EINVAL) {
		unix.Close(stop)
		return nil, fmt.Errorf("set the flags of the system call filter's listener: %w", err)
	}
	return l, nil
}

// setFlags takes the flags by value (SECCOMP_IOCTL_NOTIF_SET_FLAGS).
func (l *Listener) setFlags(flags uintptr) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), IoctlSetFlags, flags)
	runtime.KeepAlive(l.file)
	if errno != 0 {
		return errno
	}
	return nil
}

// File is the descriptor, which stays the listener's.
func (l *Listener) File() *os.File { return l.file }

// Receive waits for a call and fills n with it. The call then waits for its answer. One goroutine at a time waits in the
// kernel; the others wait for it.
//
// It returns [ErrGone] when no process is left under the filter, and [ErrStopped] after Stop. Calls that end before they
// are received are passed over.
func (l *Listener) Receive(n *Notification) error {
	return l.receive(n, false)
}

// ReceiveNow is Receive for when Ready has just said that a call can be received, which it does not ask again.
func (l *Listener) ReceiveNow(n *Notification) error { return l.receive(n, true) }

func (l *Listener) receive(n *Notification, ready bool) error {
	l.receiving.Lock()
	defer l.receiving.Unlock()
	for ; ; ready = false {
		if !ready {
			if err := l.await(); err != nil {
				return err
			}
		}
		*n = Notification{} // the kernel insists
		switch errno := l.ioctl(IoctlReceive, unsafe.Pointer(n)); errno {
		case 0:
			return nil
		case unix.EINTR, unix.ENOENT:
		default:
			return fmt.Errorf("receive a system call from the filter: %w", errno)
		}
	}
}

// Ready waits until a call can be received, another descriptor is readable, Stop was called, or the time is over. It tells
// whether a call can be received. It is for the goroutine that receives.
func (l *Listener) Ready(other int, timeout time.Duration) bool {
	l.receiving.Lock()
	defer l.receiving.Unlock()
	fds := [...]unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}, {Fd: int32(other), Events: unix.POLLIN}, {Fd: int32(l.stop), Events: unix.POLLIN}}
	_, err := unix.Poll(fds[:], int(timeout/time.Millisecond))
	runtime.KeepAlive(l.file)
	return err == nil && fds[2].Revents == 0 && fds[0].Revents&unix.POLLIN != 0
}

// await waits until a call can be received.
func (l *Listener) await() error {
	for {
		fds := [...]unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}, {Fd: int32(l.stop), Events: unix.POLLIN}}
		_, err := unix.Poll(fds[:], -1)
		switch got := fds[0].Revents; {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("wait for a system call from the filter: %w", err)
		case fds[1].Revents != 0:
			return ErrStopped
		case got&unix.POLLIN != 0:
			return nil
		case got&unix.POLLHUP != 0:
			return ErrGone
		default:
			return fmt.Errorf("wait for a system call from the filter: poll gave %#x for its listener", got)
		}
	}
}

// Valid returns nil while the call waits for its answer, else [ErrCallEnded]. Whatever was done by way of the caller's
// thread number (its memory, its descriptors) counts only if Valid returns nil afterwards.
func (l *Listener) Valid(id uint64) error {
	return callError("ask about", l.ioctl(IoctlValid, unsafe.Pointer(&id)))
}

// Respond ends the call with a result, or with errno if that is not 0. It returns [ErrCallEnded] if nobody waits for it.
func (l *Listener) Respond(id uint64, val int64, errno syscall.Errno) error {
	return l.Send(Result(id, val, errno))
}

// Continue lets the kernel perform the call with what the caller's registers, and its memory, hold then. It is only for
// calls that were not judged by anything in memory: another thread can put something else there meanwhile.
func (l *Listener) Continue(id uint64) error {
	return l.Send(Response{ID: id, Flags: FlagContinue})
}

// Send ends the call as r says. It returns [ErrCallEnded] if nobody waits for it.
func (l *Listener) Send(r Response) error {
	return callError("answer", l.ioctl(IoctlSend, unsafe.Pointer(&r)))
}

// AddFD gives the caller a descriptor and returns its number there. The caller's limits apply: EMFILE. It returns
// [ErrCallEnded] if the call has ended.
//
// With AddSend the thread blocks its signals meanwhile: interrupted at the wrong moment, the kernel would let the call
// return 0 and give no descriptor (seccomp_notify_addfd in kernel/seccomp.c). Whoever makes this control call by itself
// blocks them too.
func (l *Listener) AddFD(a AddFD) (int, error) {
	if a.Flags&AddSend != 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var every, before unix.Sigset_t
		for i := range every.Val {
			every.Val[i] = ^every.Val[i]
		}
		if err := unix.PthreadSigmask(unix.SIG_SETMASK, &every, &before); err != nil {
			return -1, fmt.Errorf("block signals: %w", err)
		}
		defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) //nolint:errcheck // no valid mask is refused
	}
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), IoctlAddFD, uintptr(unsafe.Pointer(&a)))
	runtime.KeepAlive(l.file)
	if errno != 0 {
		return -1, callError("give a descriptor to the caller of", errno)
	}
	return int(fd), nil
}

// Stop makes every Receive return [ErrStopped], now and later. Calls can still be answered.
func (l *Listener) Stop() error {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	if _, err := unix.Write(l.stop, one[:]); err != nil {
		return fmt.Errorf("stop the listener of the system call filter: %w", err)
	}
	return nil
}

// Close closes the descriptors. It is for the end: no method may be running or follow, and no process of the filter may
// live (see the package's comment).
func (l *Listener) Close() error {
	return errors.Join(l.file.Close(), os.NewSyscallError("close", unix.Close(l.stop)))
}

func (l *Listener) ioctl(op uintptr, at unsafe.Pointer) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), op, uintptr(at))
	runtime.KeepAlive(l.file)
	return errno
}

func callError(what string, errno syscall.Errno) error {
	switch errno {
	case 0:
		return nil
	case unix.ENOENT:
		return ErrCallEnded
	}
	return fmt.Errorf("%s a system call that the filter put to srt: %w", what, errno)
}
