package broker

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

// dialWaiting connects on a thread of its own, and gives that thread's number when as many dials are under way as there are
// then to be.
func dialWaiting(fd int, to netip.AddrPort, dials int) (tid int, result <-chan error) {
	tid, result = connectApart(fd, to)
	awaitDials(dials)
	return tid, result
}

func awaitDials(count int) {
	if !eventually(func() bool { return ask(hostBusy, uint16(count)) == nil }) {
		panic("nothing is dialled for")
	}
}

// release has one dial to hostSlow go on.
func release() { fatal(ask(hostRelease, 80)) }

// ask connects to a host that the gate refuses after doing something.
func ask(host byte, port uint16) error {
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	defer unix.Close(fd)
	err := connectTo(fd, unix.AF_INET, outside(host, port))
	if errors.Is(err, unix.EXFULL) {
		return nil
	}
	return err
}

// netSignalsProbe has signals come while a connect waits.
func netSignalsProbe() notes {
	n := notes{}
	got := make(chan os.Signal, 1)
	signal.Notify(got, unix.SIGUSR1) // with SA_RESTART
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	tid, c := dialWaiting(fd, outside(hostSlow, 80), 1)
	for range 3 {
		fatal(unix.Tgkill(os.Getpid(), tid, unix.SIGUSR1))
		<-got
	}
	release()
	n.err("with SA_RESTART", <-c)
	n.err("  echo", echoes(fd, "hello"))
	fatal(unix.Close(fd))

	withoutRestart(unix.SIGUSR2)
	fd = inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	tid, c = dialWaiting(fd, outside(hostSlow, 80), 1)
	fatal(unix.Tgkill(os.Getpid(), tid, unix.SIGUSR2))
	n.err("without", <-c)
	_, err := unix.Getpeername(fd)
	n.err("  peer before", err)
	release()
	n["  events"] = fmt.Sprintf("%#x", pollFor(fd, unix.POLLOUT))
	n["  error"] = sockError(fd)
	n.err("  connect", connectTo(fd, unix.AF_INET, outside(hostSlow, 80)))
	n.err("  echo after", echoes(fd, "hello"))
	fatal(unix.Close(fd))

	// With a time limit of its own a call is never made again (signal(7)).
	fd = inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	fatal(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 1000}))
	tid, c = dialWaiting(fd, outside(hostSilent, 80), 1)
	fatal(unix.Tgkill(os.Getpid(), tid, unix.SIGUSR1))
	n.err("with a time limit", <-c)
	fatal(unix.Close(fd))
	return n
}

func TestNet_SignalsEndTheWaitingNotTheConnecting(t *testing.T) {
	g := newGate(t)
	noFailures(t, runNotes(t, netSetup(t, g, "net-signals"), notes{"with SA_RESTART": "ok", "  echo": "ok", "without": "EINTR",
		"  peer before": "ENOTCONN", "  events": "0x4", "  error": "none", "  connect": "ok", "  echo after": "ok", "with a time limit": "EINTR"}))
}

// kernelSignalsProbe is netSignalsProbe for connections within the sandbox, for which the kernel waits.
func kernelSignalsProbe() notes {
	n := notes{}
	at := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	withoutRestart(unix.SIGUSR2)
	to := full(unix.AF_INET, at)
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	tid, c := connectApart(fd, to)
	waitForSynSent(fd)
	fatal(unix.Tgkill(os.Getpid(), tid, unix.SIGUSR2))
	n.err("without SA_RESTART", <-c)
	fatal(unix.SetNonblock(fd, true))
	n.err("again", connectTo(fd, unix.AF_INET, to))
	fatal(unix.Close(fd))
	return n
}

// waitForSynSent waits until the kernel is connecting a socket, and, under a broker, its call has been received.
func waitForSynSent(fd int) {
	if !eventually(func() bool {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return err == nil && info.State == unix.BPF_TCP_SYN_SENT
	}) {
		panic("nothing connects")
	}
}

func TestNet_SignalsEndWaitingWithinTheSandbox(t *testing.T) {
	want := notes{"without SA_RESTART": "EINTR", "again": "EALREADY"}
	runNotes(t, setup{probe: "net-kernel-signals", folder: tempFolder(t), alone: true}, want)
	noFailures(t, runNotes(t, netSetup(t, newGate(t), "net-kernel-signals"), want))
}
