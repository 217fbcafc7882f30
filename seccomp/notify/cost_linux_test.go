package notify

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receiver is one way to receive a call.
type receiver struct {
	name    string
	flags   uintptr // of the listener
	receive func(*supervised, *Notification) error
}

// receivers compares what Listener does with what it could leave out: the flag (Linux 6.6), and the poll, without which
// kernels before 6.11 never tell that the last process has ended.
var receivers = []receiver{
	{"Receive", unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, (*supervised).receive},
	{"Receive, no synchronous wake-up", 0, (*supervised).receive},
	{"without poll", unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, (*supervised).receiveOnly},
	{"without poll, no synchronous wake-up", 0, (*supervised).receiveOnly},
}

func (s *supervised) receive(n *Notification) error { return s.Receive(n) }

func (s *supervised) receiveOnly(n *Notification) error {
	for {
		*n = Notification{}
		switch errno := s.ioctl(IoctlReceive, unsafe.Pointer(n)); errno {
		case 0:
			return nil
		case unix.ENOENT:
			if fds := []unix.PollFd{{Fd: int32(s.fd)}}; true {
				if _, err := unix.Poll(fds, 0); err == nil && fds[0].Revents&unix.POLLHUP != 0 {
					return ErrGone
				}
			}
		case unix.EINTR:
		default:
			return errno
		}
	}
}

// BenchmarkRoundTrip reports what one call costs its caller when it is received and answered at once.
func BenchmarkRoundTrip(b *testing.B) {
	for _, r := range receivers {
		b.Run(r.name, func(b *testing.B) {
			s := supervise(b, modeBench, strconv.Itoa(b.N), askMkdir())
			if err := s.setFlags(r.flags); err != nil && !errors.Is(err, unix.EINVAL) {
				b.Fatal(err)
			}
			done := make(chan error, 1)
			go onThrownAwayThread(func() { done <- s.answerAll(r.receive) })
			if err := <-done; err != nil {
				b.Fatal(err)
			}
			var each float64
			if _, err := fmt.Sscan(s.wait(b), &each); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(each, "ns/call")
		})
	}
}

func (s *supervised) answerAll(receive func(*supervised, *Notification) error) error {
	var n Notification
	for {
		switch err := receive(s, &n); {
		case errors.Is(err, ErrGone):
			return nil
		case err != nil:
			return err
		}
		if err := s.Respond(n.ID, 0, unix.EPERM); err != nil {
			return err
		}
	}
}

// BenchmarkTwoReceivers is the cost where a second receiver waits beside the first.
func BenchmarkTwoReceivers(b *testing.B) {
	s := supervise(b, modeBench, strconv.Itoa(b.N), askMkdir())
	done := make(chan error, 2)
	for range cap(done) {
		go onThrownAwayThread(func() { done <- s.answerAll((*supervised).receive) })
	}
	for range cap(done) {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	var each float64
	if _, err := fmt.Sscan(s.wait(b), &each); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(each, "ns/call")
}
