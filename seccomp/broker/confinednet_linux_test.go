package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/seccomp"
)

// confinedHost is what there is outside of a confined sandbox: an echo server that stands for a proxy of its session, and another,
// with a socket of AF_UNIX beside it, that the command must not reach.
type confinedHost struct {
	Proxy, Other int // ports on 127.0.0.1
	proxy, other net.Listener
	unix         net.Listener
	reached      atomic.Int32 // connections to other and unix
	refused      []netip.AddrPort
	mu           sync.Mutex
}

func newConfinedHost(t testing.TB, folder string) *confinedHost {
	t.Helper()
	h := &confinedHost{}
	var wait sync.WaitGroup
	listen := func(network, at string, handle func(net.Conn)) net.Listener {
		l, err := net.Listen(network, at)
		if err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				wait.Go(func() { handle(c) })
			}
		})
		t.Cleanup(func() { l.Close() })
		return l
	}
	t.Cleanup(wait.Wait)
	h.proxy = listen("tcp", "127.0.0.1:0", (&testGate{}).echo)
	wrong := func(c net.Conn) { h.reached.Add(1); c.Close() }
	h.other = listen("tcp", "127.0.0.1:0", wrong)
	h.unix = listen("unix", filepath.Join(folder, "host.sock"), wrong)
	h.Proxy, h.Other = h.proxy.Addr().(*net.TCPAddr).Port, h.other.Addr().(*net.TCPAddr).Port
	text, err := json.Marshal(h)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "host.json"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// startConfined starts a probe without namespaces, whose network is that of net.
func startConfined(t testing.TB, h *confinedHost, probe, folder string, conf ConfinedNet) *sandbox {
	t.Helper()
	p, err := ns.NewProgram()
	if err != nil {
		t.Fatal(err)
	}
	_, keep, rights := launchConfig()
	p.Chdir(folder)
	p.Undumpable()
	if err := p.ConfineCapabilities(keep); err != nil {
		t.Fatal(err)
	}
	ruleset := func() ns.Slot {
		attr := [3]uint64{2: unix.LANDLOCK_SCOPE_SIGNAL}
		return p.Call("make the ruleset", "", unix.SYS_LANDLOCK_CREATE_RULESET, ns.Pointer(p, &attr), ns.Int(24), ns.Int(0))
	}
	p.RestrictCommand(ruleset())
	forHands := ruleset() // before the filters, which refuse it
	filters := []seccomp.Filter{seccomp.Base(), seccomp.Namespaces(), seccomp.UnixDatagram(), seccomp.ConfinedSockets()}
	if conf.Made {
		filters = append(filters, seccomp.MadeSockets())
	}
	for _, f := range seccomp.Stack(append(filters, seccomp.ConfinedNetwork())...) {
		listener := p.FilterWithListener(f.Name, f.Program())
		p.SendFiles(0, "the listener", listener, forHands)
		p.Close(listener)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	prepared, err := ns.Prepare(&ns.Config{Confined: true, Stdin: stdin, Stdout: w, Stderr: os.Stderr}, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := prepared.AllowHands(); err != nil {
		t.Fatal(errors.Join(err, prepared.Close()))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process, err := prepared.Start(&ns.Command{Candidates: []string{self}, Args: []string{self},
		Env: []string{envProbe + "=" + probe, envFolder + "=" + folder, "PATH=/usr/bin:/bin", "GODEBUG=asyncpreemptoff=1"}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	b := &sandbox{process: process, out: r, served: make(chan error, 1)}
	b.serve(t, setup{judge: &testJudge{}, mutate: func(c *Config) {
		conf.Proxies = []netip.AddrPort{netip.AddrPortFrom(loopback4, uint16(h.Proxy))}
		conf.Refused = func(_ int, _ string, dst netip.AddrPort) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.refused = append(h.refused, dst)
		}
		c.Confined = &conf
		c.NewHand = func() (Hand, error) {
			return ns.StartHand(ns.HandConfig{Process: process, Ruleset: process.Files[1], Listener: process.Files[0], Keep: keep})
		}
	}}, keep, rights)
	return b
}

// What a confined command can reach, by the way in which it tries (NET-3).
func TestConfinedNet(t *testing.T) {
	for _, made := range []bool{false, true} {
		for _, binding := range []bool{false, true} {
			t.Run(fmt.Sprintf("made=%t,binding=%t", made, binding), func(t *testing.T) {
				folder := tempFolder(t)
				h := newConfinedHost(t, folder)
				b := startConfined(t, h, "confined-net", folder, ConfinedNet{LocalBinding: binding, Made: made})
				done := make(chan struct{})
				var host sync.WaitGroup
				if binding {
					host.Go(func() { h.takeOver(folder, done) })
				}
				var got map[string]string
				b.finish(t, &got)
				close(done)
				host.Wait()
				for name, s := range confinedSituations {
					want := s.want
					switch {
					case !binding && s.unbound != "":
						want = s.unbound
					case made && s.made != "":
						want = s.made
					}
					if got[name] != want {
						t.Errorf("%s: got %q, want %q", name, got[name], want)
					}
				}
				if n := h.reached.Load(); n != 0 {
					t.Errorf("%d connections came to what the command must not reach", n)
				}
				want := netip.MustParseAddrPort("192.0.2.1:80")
				for _, a := range h.refused {
					if a != want && a.Addr() != netip.MustParseAddr("2001:db8::1") {
						t.Errorf("%v was reported", a)
					}
				}
				if len(h.refused) < 2 {
					t.Errorf("reported were %v, want %v among others", h.refused, want)
				}
			})
		}
	}
}

// takeOver listens where the command has, once it says that it does no more.
func (h *confinedHost) takeOver(folder string, done <-chan struct{}) {
	var text []byte
	eventually(func() bool {
		var err error
		text, err = os.ReadFile(filepath.Join(folder, "free"))
		return err == nil
	})
	var l net.Listener
	eventually(func() bool {
		var err error
		l, err = net.Listen("tcp", "127.0.0.1:"+string(text))
		return err == nil
	})
	if l == nil {
		return
	}
	_ = os.WriteFile(filepath.Join(folder, "taken"), nil, 0o644)
	<-done
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond)) // what came is in its queue
	if c, err := l.Accept(); err == nil {
		h.reached.Add(1)
		c.Close()
	}
	l.Close()
}
