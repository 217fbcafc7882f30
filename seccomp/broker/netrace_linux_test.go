package broker

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

func init() {
	probes["net-rewrite"] = func(string) any { return rewriteProbe() }
	probes["net-exchange"] = func(string) any { return exchangeProbe() }
}

// raceTime bounds a race and raceTries says when it has been tried often enough. The full number takes SRT_TEST_BROKER_FULL.
const raceTime = 3 * time.Second

func fullRun() bool { return os.Getenv(envFull) != "" }

func raceTries() int {
	if fullRun() {
		return 1_000_000
	}
	return 20_000
}

// raced is what a race brought about.
type raced struct {
	Tries, Connected, Refused int
	Bad                       []string
}

// end looks at one try: where does the socket lead, and does it say so?
func (r *raced) end(fd int, err error) {
	r.Tries++
	switch {
	case errors.Is(err, unix.EINPROGRESS):
		pollFor(fd, unix.POLLOUT)
		if e := sockError(fd); e != "none" {
			r.Bad = append(r.Bad, "dial: "+e)
			return
		}
	case errors.Is(err, unix.EACCES):
		r.Refused++
		return
	case err != nil:
		r.Bad = append(r.Bad, err.Error())
		return
	}
	r.Connected++
	line := make([]byte, 0, 64)
	for !bytes.HasSuffix(line, []byte("\n")) {
		pollFor(fd, unix.POLLIN)
		n, err := unix.Read(fd, line[len(line):cap(line)])
		if n <= 0 {
			r.Bad = append(r.Bad, fmt.Sprint("no banner: ", n, err))
			return
		}
		line = line[:len(line)+n]
	}
	peer, err := unix.Getpeername(fd)
	if err != nil || addrOf(peer).String()+"\n" != string(line) {
		r.Bad = append(r.Bad, fmt.Sprintf("connected to %q, which says it is %v, %v", line, peer, err))
	}
	if bytes.Contains(line, []byte("192.0.2.3")) {
		r.Bad = append(r.Bad, "connected to what is denied")
	}
}

// race runs tries until there were enough or the time is over.
func race(try func(i int, r *raced)) (r raced) {
	end := time.Now().Add(raceTime)
	for i := 0; i < raceTries() && (fullRun() || time.Now().Before(end)) && len(r.Bad) < 10; i++ {
		try(i, &r)
	}
	return r
}

// rewriteProbe connects again and again while another thread rewrites the address between an allowed and a denied one.
func rewriteProbe() raced {
	addresses := [][]byte{socket.Address(unix.AF_INET, outside(hostLive, 80)), socket.Address(unix.AF_INET, outside(hostDenied, 80)),
		socket.Address(unix.AF_INET, outside(hostLive, 81))}
	shared := new([unix.SizeofSockaddrInet4]byte)
	copy(shared[:], addresses[0])
	// The words that differ are written whole: an address is always one of those, or one of their mixtures of host and port.
	host, port := (*atomic.Uint32)(unsafe.Pointer(&shared[4])), (*atomic.Uint32)(unsafe.Pointer(&shared[0]))
	word := func(b []byte) uint32 { return *(*uint32)(unsafe.Pointer(&b[0])) }
	var stop atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		runtime.LockOSThread()
		for i := 0; !stop.Load(); i++ {
			a := addresses[i%len(addresses)]
			host.Store(word(a[4:]))
			port.Store(word(a))
			if i%256 == 0 {
				runtime.Gosched() // nothing else stops this loop for the collector
			}
		}
	})
	r := race(func(i int, r *raced) {
		fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM|[]int{0, unix.SOCK_NONBLOCK}[i%2])
		defer unix.Close(fd)
		_, _, errno := syscall.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(shared)), unix.SizeofSockaddrInet4)
		r.end(fd, asError(errno))
	})
	stop.Store(true)
	wait.Wait()
	return r
}

// exchangeProbe connects again and again while another thread puts other sockets in the place of the descriptor.
func exchangeProbe() raced {
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	others := []int{inetSocket(unix.AF_INET, unix.SOCK_DGRAM)}
	var stop atomic.Bool
	var wait sync.WaitGroup
	var mu sync.Mutex
	fresh := []int{inetSocket(unix.AF_INET, unix.SOCK_STREAM), inetSocket(unix.AF_INET, unix.SOCK_STREAM)}
	wait.Go(func() {
		runtime.LockOSThread()
		for i := 0; !stop.Load(); i++ {
			mu.Lock()
			list := append(slices.Clone(others), fresh...)
			err := unix.Dup3(list[i%len(list)], fd, unix.O_CLOEXEC)
			mu.Unlock()
			fatal(err)
		}
	})
	r := race(func(i int, r *raced) {
		to := outside([]byte{hostLive, hostDenied}[i%2], uint16(80+i%7))
		err := connectTo(fd, unix.AF_INET, to)
		r.Tries++
		switch {
		case err == nil, errors.Is(err, unix.EISCONN):
		case errors.Is(err, unix.EACCES):
			r.Refused++
			return
		default:
			r.Bad = append(r.Bad, err.Error())
			return
		}
		// One of the two was connected: each that is leads where it says.
		mu.Lock()
		defer mu.Unlock()
		for k, f := range fresh {
			if _, err := unix.Getpeername(f); err == nil {
				r.Tries--
				r.end(f, nil)
				fatal(unix.Close(f))
				fresh[k] = inetSocket(unix.AF_INET, unix.SOCK_STREAM)
			}
		}
	})
	stop.Store(true)
	wait.Wait()
	return r
}

// Threads that change the address or the descriptor in the middle of a connect change nothing about what is judged and
// reached (attacks on the check of an address: "the kernel must never re-read an address after the decision").
func TestNet_RacingThreads(t *testing.T) {
	for _, probe := range []string{"net-rewrite", "net-exchange"} {
		t.Run(probe, func(t *testing.T) {
			g := newGate(t)
			g.banner = true
			var got raced
			runSandbox(t, netSetup(t, g, probe), &got)
			t.Logf("%d tries, %d connected, %d refused", got.Tries, got.Connected, got.Refused)
			if len(got.Bad) > 0 || got.Connected == 0 || got.Refused == 0 {
				t.Errorf("%+v", got)
			}
			g.sawOnly(t, raceDestinations()...)
		})
	}
}

// raceDestinations is what the gate may have been asked for.
func raceDestinations() (list []netip.AddrPort) {
	for _, host := range []byte{hostLive, hostDenied} {
		for port := uint16(80); port < 87; port++ {
			list = append(list, outside(host, port))
		}
	}
	return list
}
