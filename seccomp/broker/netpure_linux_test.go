package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

func TestReachOf(t *testing.T) {
	for text, want := range map[string]struct {
		to    string
		reach reach
	}{
		"127.0.0.1:1":            {"127.0.0.1:1", inside},
		"127.255.0.9:1":          {"127.255.0.9:1", inside},
		"[::ffff:127.2.3.4]:1":   {"127.2.3.4:1", inside},
		"0.0.0.0:1":              {"127.0.0.1:1", inside},
		"[::ffff:0.0.0.0]:1":     {"127.0.0.1:1", inside},
		"[::]:1":                 {"[::1]:1", inside},
		"[::1]:1":                {"[::1]:1", inside},
		"0.0.0.1:1":              {"0.0.0.1:1", beyond},
		"[::7f00:1]:1":           {"[::127.0.0.1]:1", beyond},
		"192.0.2.1:1":            {"192.0.2.1:1", beyond},
		"[::ffff:192.0.2.1]:1":   {"192.0.2.1:1", beyond},
		"[2001:db8::1]:1":        {"[2001:db8::1]:1", beyond},
		"[fe80::1%3]:1":          {"[fe80::1%3]:1", beyond},
		"[fe80::1]:1":            {"[fe80::1]:1", nowhere},
		"169.254.169.254:1":      {"169.254.169.254:1", beyond},
		"224.0.0.1:1":            {"224.0.0.1:1", nowhere},
		"[ff02::1]:1":            {"[ff02::1]:1", nowhere},
		"255.255.255.255:1":      {"255.255.255.255:1", nowhere},
		"[::ffff:224.0.0.1]:1":   {"224.0.0.1:1", nowhere},
		"[64:ff9b::7f00:1]:1":    {"[64:ff9b::7f00:1]:1", beyond},
		"[2002:7f00:1::]:1":      {"[2002:7f00:1::]:1", beyond},
		"[::ffff:0:127.0.0.1]:1": {"[::ffff:0:7f00:1]:1", beyond},
	} {
		to, where := reachOf(netip.MustParseAddrPort(text))
		if to != netip.MustParseAddrPort(want.to) || where != want.reach {
			t.Errorf("%s: %v %d, want %v", text, to, where, want)
		}
	}
}

func TestWaitingAddress_IsUsableAndComesAgainLate(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for _, start := range []uint32{0, 254<<16 - 500, 1<<32 - 500} {
		for i := range uint32(1000) {
			a := waitingAddress(start + i)
			if b := a.As4(); b[0] != 127 || b[1] == 0 || b[1] == 255 {
				t.Fatalf("%d: %v", start+i, a)
			}
			seen[a] = true
		}
	}
	if len(seen) < 2000 {
		t.Errorf("%d addresses", len(seen))
	}
}

const socketList = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   2: 0100007F:1F90 0100007F:0016 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
`

const socketList6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
   1: 00000000000000000000000001000000:0051 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
   2: 0000000000000000FFFF00000200007F:0052 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
`

func TestListensIn(t *testing.T) {
	if [2]byte{1, 0} != [2]byte(nativeBytes(1)[:2]) {
		t.Skip("got a big-endian machine, want a little-endian one: the text is one's")
	}
	for _, c := range []struct {
		list, at string
		want     bool
	}{
		{socketList, "127.0.0.1:5432", true}, {socketList, "127.0.0.2:5432", false}, {socketList, "127.0.0.9:22", true},
		{socketList, "[::1]:22", false}, {socketList, "127.0.0.1:8080", false}, {socketList6, "127.0.0.1:80", true},
		{socketList6, "[::1]:80", true}, {socketList6, "[::1]:81", true}, {socketList6, "127.0.0.1:81", false},
		{socketList6, "127.0.0.2:82", true}, {socketList6, "[::1]:82", false}, {"", "127.0.0.1:1", false},
	} {
		got, err := listensIn(strings.NewReader(c.list), netip.MustParseAddrPort(c.at))
		if err != nil || got != c.want {
			t.Errorf("%s: %t %v in\n%s", c.at, got, err, c.list)
		}
	}
	for _, bad := range []string{"x\n 0: 01:2", "x\n 0: zz:1 a 0A", "x\n 0: 0100007F:12345 a 0A", "x\n 0: 0100:1 a 0A"} {
		if _, err := listensIn(strings.NewReader(bad), netip.MustParseAddrPort("127.0.0.1:1")); !errors.Is(err, errSockets) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestErrnos(t *testing.T) {
	for _, c := range []struct {
		err           error
		dial, refusal syscall.Errno
	}{
		{errors.New("x"), unix.ECONNREFUSED, unix.EACCES},
		{&net.OpError{Err: os.NewSyscallError("connect", unix.EHOSTUNREACH)}, unix.EHOSTUNREACH, unix.EHOSTUNREACH},
		{fmt.Errorf("x: %w", unix.EACCES), unix.EACCES, unix.EACCES},
		{os.ErrDeadlineExceeded, unix.ETIMEDOUT, unix.EACCES},
		{context.DeadlineExceeded, unix.ETIMEDOUT, unix.EACCES},
		{syscall.Errno(0), unix.ECONNREFUSED, unix.EACCES},
		{errnoRestart, unix.ECONNREFUSED, unix.EACCES},
	} {
		if got := dialErrno(c.err); got != c.dial {
			t.Errorf("%v: dial %v, want %v", c.err, got, c.dial)
		}
		if got := refusalErrno(c.err); got != c.refusal {
			t.Errorf("%v: refusal %v, want %v", c.err, got, c.refusal)
		}
	}
}

// FuzzInetAddress holds that what is read of an address is what the kernel reads of it: where the kernel takes a datagram
// socket to for an address on loopback is what was read.
func FuzzInetAddress(f *testing.F) {
	for _, a := range []string{"127.0.0.1:9", "0.0.0.0:1", "[::1]:9", "[::]:9", "[::ffff:127.0.0.1]:9", "192.0.2.1:80", "[fe80::1]:1", "224.0.0.1:5"} {
		at := netip.MustParseAddrPort(a)
		for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
			if family == unix.AF_INET && at.Addr().Unmap().Is6() {
				continue
			}
			f.Add(true, socket.Address(family, at))
			f.Add(false, socket.Address(family, at))
		}
	}
	f.Add(true, []byte{0, 0})
	f.Add(false, []byte{10, 0, 0})
	f.Fuzz(func(t *testing.T, six bool, address []byte) {
		if len(address) > sockaddrMax {
			return
		}
		family := unix.AF_INET
		if six {
			family = unix.AF_INET6
		}
		asked, ok := inetAddress(family, true, address)
		strict, stream := inetAddress(family, false, address)
		if stream && (!ok || strict != asked) {
			t.Fatalf("%v as a stream's, %v as a datagram's", strict, asked)
		}
		if kind, known := familyOf(address); known && kind == unix.AF_UNSPEC {
			if ok {
				t.Fatal("an address without a family")
			}
			return
		}
		to, where := reachOf(asked)
		if ok && where != inside {
			return // where that leads depends on this machine
		}
		fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		errno := socket.Connect(fd, address)
		if !ok {
			if errno == 0 {
				t.Fatalf("the kernel takes %v", address)
			}
			return
		}
		peer, err := unix.Getpeername(fd)
		if errno != 0 || err != nil {
			return // a broadcast address, flow labels
		}
		if got := unmapped(addrOf(peer)); got != to {
			t.Fatalf("the kernel takes it to %v, not to %v", got, to)
		}
	})
}

func FuzzListensIn(f *testing.F) {
	f.Add(socketList, uint16(22))
	f.Add(socketList6, uint16(80))
	f.Add("\n0 1 2 0A", uint16(0))
	f.Fuzz(func(t *testing.T, list string, port uint16) {
		at := netip.AddrPortFrom(netip.IPv6Loopback(), port)
		found, err := listensIn(strings.NewReader(list), at)
		if found && (err != nil || !strings.Contains(strings.ToUpper(list), fmt.Sprintf("%X", port))) {
			t.Errorf("found %v in %q, %v", at, list, err)
		}
	})
}
