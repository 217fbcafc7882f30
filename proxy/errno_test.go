package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

func TestErrno(t *testing.T) {
	connectError := func(err error) error {
		return fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)})
	}
	for _, tc := range []struct {
		name string
		err  error
		want syscall.Errno
	}{
		{"nothing", nil, 0},
		{"refused by the policy", &CaptureError{"a.test:1", "no"}, syscall.EACCES},
		{"refused by its address", fmt.Errorf("x: %w", &ResolvedError{Host: "a.test", Classes: []policy.Class{policy.ClassLoopback}}), syscall.EACCES},
		{"connection refused", connectError(errConnectionRefused), syscall.ECONNREFUSED},
		{"no route to the host", connectError(errHostUnreachable), syscall.EHOSTUNREACH},
		{"host is down", connectError(syscall.EHOSTDOWN), syscall.EHOSTUNREACH},
		{"no route", connectError(errNetworkUnreachable), syscall.ENETUNREACH},
		{"kernel's time-out", connectError(errTimedOut), syscall.ETIMEDOUT},
		{"a firewall is not the policy", connectError(syscall.EACCES), syscall.EHOSTUNREACH},
		{"nor is this one", connectError(syscall.EPERM), syscall.EHOSTUNREACH},
		{"no port left on this host", connectError(syscall.EADDRNOTAVAIL), syscall.EAGAIN},
		{"no descriptor left", connectError(syscall.EMFILE), syscall.EAGAIN},
		{"none on the host", connectError(syscall.ENFILE), syscall.EAGAIN},
		{"no memory left", connectError(syscall.ENOBUFS), syscall.EAGAIN},
		{"no descriptor for a lookup", lookupError{connectError(syscall.EMFILE)}, syscall.EAGAIN},
		{"our time-out", &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}, syscall.ETIMEDOUT},
		{"end of the context", context.DeadlineExceeded, syscall.ETIMEDOUT},
		{"the program left", errClientGone, syscall.ECONNREFUSED},
		{"no such name", lookupError{&net.DNSError{Err: "no such host", IsNotFound: true}}, syscall.EHOSTUNREACH},
		{"no address", lookupError{errNoAddress}, syscall.EHOSTUNREACH},
		{"silent name server", lookupError{&net.DNSError{Err: "i/o timeout", IsTimeout: true}}, syscall.ETIMEDOUT},
		{"parent says no", &tunnelRefusedError{403, "no"}, syscall.ECONNREFUSED},
		{"parent wants credentials", &tunnelRefusedError{407, "no"}, syscall.ECONNREFUSED},
		{"parent cannot", &tunnelRefusedError{502, "no"}, syscall.EHOSTUNREACH},
		{"parent waited", &tunnelRefusedError{504, "no"}, syscall.ETIMEDOUT},
		{"no such socket", connectError(syscall.ENOENT), syscall.ECONNREFUSED},
		{"anything else", errors.New("x"), syscall.ECONNREFUSED},
		{"said already", fmt.Errorf("y: %w", &errnoError{syscall.ENETUNREACH, errors.New("x")}), syscall.ENETUNREACH},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Errno(tc.err); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if tc.err == nil {
				return
			}
			// The errno comes before any other in what the broker gets.
			var found syscall.Errno
			if err := withErrno(tc.err); !errors.As(err, &found) || found != tc.want || Errno(err) != tc.want {
				t.Errorf("found %v", found)
			}
		})
	}
}

func TestErrnoOfRealDials(t *testing.T) {
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{"127.0.0.1", "gone.test", "[fe80::1]"}}, func(o *Options) { o.Resolver = &fakeResolver{} })
	for _, tc := range []struct {
		name string
		dst  netip.AddrPort
		want syscall.Errno
	}{
		{"closed port", netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", closedPort(t))), syscall.ECONNREFUSED},
		{"no such name", c.addresses("gone.test", 80)[0], syscall.EHOSTUNREACH},
		{"link-local without a zone", netip.MustParseAddrPort("[fe80::1]:80"), syscall.ENETUNREACH},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, err := c.Judge(testPID, tc.dst)
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.Dial(t.Context())
			var found syscall.Errno
			if !errors.As(err, &found) || found != tc.want {
				t.Errorf("%v, errno %v, want %v", err, found, tc.want)
			}
		})
	}
	c.wantAll() // dial failures are not recorded (NET-73)
	c.settled()
}

func TestErrnoOfASilentHost(t *testing.T) {
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{"slow.test"}}, func(o *Options) {
		o.Resolver, o.Limits.Dial = silentResolver{}, 1
	})
	w, err := c.Judge(testPID, c.addresses("slow.test", 80)[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Dial(t.Context()); !errors.Is(err, syscall.ETIMEDOUT) || Errno(err) != syscall.ETIMEDOUT {
		t.Errorf("%v", err)
	}
}

// silentResolver waits until the lookup is given up.
type silentResolver struct{}

func (silentResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestErrnoWithoutDescriptors: what srt lacks is not the program's fault, nor its limit, and is told in the log.
func TestErrnoWithoutDescriptors(t *testing.T) {
	var log bytes.Buffer
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{"127.0.0.1:1"}}, func(o *Options) { o.Logger = testLogger(&log) })
	c.srv().connectTCP = func(context.Context, *net.Dialer, netip.AddrPort) (net.Conn, error) {
		return nil, os.NewSyscallError("socket", syscall.EMFILE)
	}
	w, err := c.Judge(testPID, addrPortOf(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Dial(t.Context()); !errors.Is(err, syscall.EAGAIN) || Errno(err) != syscall.EAGAIN {
		t.Errorf("%v", err)
	}
	if !strings.Contains(log.String(), "too many open files") {
		t.Errorf("log: %q", log.String())
	}
	c.wantAll()
	c.settled()
}

func TestConnectionsForDescriptors(t *testing.T) {
	for descriptors, want := range map[uint64]int{0: 4, 64: 10, 1024: 330, 20000: 6656, 1 << 20: 10912, math.MaxUint64: 10912} {
		if got := connectionsFor(descriptors); got != want {
			t.Errorf("%d descriptors: %d connections", descriptors, got)
		}
	}
	if got := (Limits{}).orDefaults().Connections; got < 4 || got > maxConnections {
		t.Errorf("%d connections by default", got)
	}
	if got := (Limits{Connections: 20000}).orDefaults().Connections; got != 20000 {
		t.Errorf("%d connections of 20000", got)
	}
}
