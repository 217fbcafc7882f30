package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	testmode "github.com/srt-sandbox/srt/test/mode"
	"github.com/srt-sandbox/srt/test/programs/stage"
)

// The network of the tests, drawn once:
//
//	sandbox ──srt── host 10.203.255.1 ══ veth ══ 10.203.255.2 servers, which answer for all of 10.203.0.0/16 and of
//	                 │                                        fd5a:203:1::/64, and the host's name server on port 53
//	                 127.0.0.1: what a test has there
const (
	serverNet = "10.203.255.2"
	goodName  = "good.test"
	good      = "10.203.1.1" // allowed on goodPort, where the tests allow anything
	good6     = "fd5a:203:1::1"
	bad       = "10.203.2.1" // never allowed
	bad6      = "fd5a:203:1::bad"
	goodPort  = 7
)

const hostCommands = `
link set lo up
link add srt-host type veth peer name srt-net netns %s
addr add 10.203.255.1/30 dev srt-host
link set srt-host up
route add 10.203.0.0/16 via 10.203.255.2
-6 addr add fd5a:203::1/64 dev srt-host nodad
-6 route add fd5a:203:1::/64 via fd5a:203::2
route add default via 10.203.255.2
-6 route add default via fd5a:203::2`

const serverCommands = `
link set lo up
addr add 10.203.255.2/30 dev srt-net
link set srt-net up
route add local 10.203.0.0/16 dev lo
-6 addr add fd5a:203::2/64 dev srt-net nodad
-6 route add local fd5a:203:1::/64 dev lo`

// world is everything outside of the sandboxes. It is one for all tests, which run one after another.
type world struct {
	dir    string // absolute; every account may read it: the attackers
	inside chan func()
	names  *nameServer
	seen   recorder
}

// theWorld makes the world when a test first asks. It lasts as long as the process, whose namespaces are its own.
var theWorld = sync.OnceValues(makeWorld)

func newWorld(t *testing.T) *world {
	t.Helper()
	stage.Need(t, "gcc", "ip")
	w, err := theWorld()
	must(t, err)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func makeWorld() (*world, error) {
	w := &world{dir: worldDir, inside: make(chan func())}
	ready := make(chan error)
	go w.serveThread(ready)
	if err := <-ready; err != nil {
		return nil, err
	}
	var network string
	w.in(func() { network = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid()) })
	if err := ip(fmt.Sprintf(hostCommands, network)); err != nil {
		return nil, err
	}
	var err error
	w.in(func() { err = ip(serverCommands) })
	for _, step := range []func() error{func() error { return err }, w.serve, w.record, w.build, w.configureHost} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// serveThread is the one thread in the network of the servers.
func (w *world) serveThread(ready chan<- error) {
	runtime.LockOSThread() // for good: the thread is no use to anybody else
	ready <- unix.Unshare(unix.CLONE_NEWNET)
	for f := range w.inside {
		f()
	}
}

// in runs f in the network of the servers: sockets it makes stay there.
func (w *world) in(f func()) {
	done := make(chan struct{})
	w.inside <- func() { defer close(done); f() }
	<-done
}

// ip runs ip(8) for each line.
func ip(lines string) error {
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		args := strings.Fields(line)
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.TrimSpace(line), err, out)
		}
	}
	return nil
}

// servedPorts are TCP ports on which every server tells who connects which address and port it came to, and then says
// back what it is told.
var servedPorts = []string{"7", "8", "80", "443", "5432"}

func (w *world) serve() error {
	for _, port := range servedPorts {
		var l net.Listener
		var err error
		w.in(func() { l, err = net.Listen("tcp", ":"+port) })
		if err != nil {
			return err
		}
		go serveBanner(l)
	}
	var err error
	w.names, err = w.serveNames()
	return err
}

// closingPort is where the server says no more than that.
const closingPort = 8

// serveBanner serves until the process ends.
func serveBanner(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			at := c.LocalAddr().(*net.TCPAddr).AddrPort()
			if _, err := fmt.Fprintf(c, "%v:%d\n", at.Addr().Unmap(), at.Port()); err != nil {
				return
			}
			if at.Port() == closingPort {
				return // it ends first, so that the host keeps no port for what has ended (TIME-WAIT)
			}
			buf := make([]byte, 4096)
			for {
				n, err := c.Read(buf)
				if _, werr := c.Write(buf[:n]); err != nil || werr != nil {
					return
				}
			}
		}()
	}
}

// blackhole lets nobody answer at an address of the servers. What is sent there arrives, and is recorded.
func (w *world) blackhole(address string) (err error) {
	w.in(func() { err = ip("route replace blackhole " + address + "/32 table local") })
	return err
}

// build puts the attackers where every account can run them.
func (w *world) build() error {
	if err := os.Chmod(w.dir, 0o755); err != nil {
		return err
	}
	sources, err := filepath.Glob("testdata/attack/*")
	if err != nil {
		return err
	}
	for _, src := range sources {
		to := filepath.Join(w.dir, filepath.Base(src))
		if name, ok := strings.CutSuffix(to, ".c"); ok {
			if out, err := exec.Command("gcc", "-static", "-pthread", "-O1", "-Wall", "-Werror", "-o", name, src).CombinedOutput(); err != nil {
				return fmt.Errorf("gcc %s: %w\n%s", src, err, out)
			}
			continue
		}
		text, err := os.ReadFile(src)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// configureHost lets the host have no names but those of the name server.
func (w *world) configureHost() error {
	for target, text := range map[string]string{
		"/etc/hosts":       "127.0.0.1 localhost\n",
		"/etc/resolv.conf": "nameserver " + serverNet + "\noptions timeout:2 attempts:2\n",
	} {
		target, err := filepath.EvalSymlinks(target)
		if err != nil {
			return err
		}
		source := filepath.Join(w.dir, filepath.Base(target))
		if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount on %s: %w", target, err)
		}
	}
	return nil
}

// rules are the network's part of a settings file, and what of the file system the command may write beside its home.
type rules struct {
	Allow, Deny []string
	Network     map[string]any
	Write       []string
	Top         map[string]any
}

// settings writes a settings file, outside of what a command may write.
func (w *world) settings(s *stage.Stage, r rules) string {
	s.T.Helper()
	network := map[string]any{"allowedDomains": list(r.Allow), "deniedDomains": list(r.Deny)}
	maps.Copy(network, r.Network)
	file := map[string]any{"network": network, "filesystem": map[string]any{
		"denyRead": list(nil), "allowWrite": append(list(r.Write), s.Home, s.Temp), "denyWrite": list(nil)}}
	maps.Copy(file, r.Top)
	text, err := json.Marshal(testmode.Settings(file))
	s.Must(err)
	f, err := os.CreateTemp(s.Dir, "settings-*.json")
	s.Must(err)
	defer f.Close()
	_, err = f.Write(text)
	s.Must(err)
	s.Must(f.Chmod(0o644))
	return f.Name()
}

func list(l []string) []string { return append([]string{}, l...) }

// run runs a command in a sandbox, to its end.
func (w *world) run(s *stage.Stage, r rules, command ...string) stage.Result {
	s.T.Helper()
	cmd := s.Command(plain(s.Srt(w.settings(s, r), command...))...)
	cmd.Env = append(slices.Clone(s.Env), "W="+w.dir)
	return s.Finish(cmd)
}

// python runs a program of python in a sandbox. The module hostile has what all of them need.
func (w *world) python(s *stage.Stage, r rules, code string, args ...string) stage.Result {
	s.T.Helper()
	head := "import sys; sys.path.insert(0, '" + w.dir + "'); sys.dont_write_bytecode = True\nfrom hostile import *\n"
	return w.run(s, r, append([]string{"/usr/bin/python3", "-c", head + code}, args...)...)
}

// done fails the test unless a program says that it came to its end, and gives its lines without that.
func done(t *testing.T, r stage.Result) []string {
	t.Helper()
	out, ok := strings.CutSuffix(r.Stdout, "DONE\n")
	if !ok || r.Status != 0 {
		t.Fatalf("the attack did not come to its end: %v", r)
	}
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
}

// wantLines compares what a program said.
func wantLines(t *testing.T, r stage.Result, want string) {
	t.Helper()
	got := done(t, r)
	if text := strings.TrimSpace(strings.Join(got, "\n")); text != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s\n%s", text, strings.TrimSpace(want), r.Stderr)
	}
}

// silent runs an attack and wants that nothing arrives anywhere but at the allowed places: host:port of TCP.
func (w *world) silent(t *testing.T, attack func(), allowed ...string) []packet {
	t.Helper()
	_, err := w.seen.take() // what an earlier test has sent is not this one's
	must(t, err)
	attack()
	packets, err := w.seen.take()
	must(t, err)
	var places []string
	for _, p := range packets {
		if place := p.String(); !slices.Contains(allowed, p.dst.String()) && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	if len(places) > 0 {
		t.Errorf("ESCAPE: packets arrived that nobody allowed:\n%s", strings.Join(places, "\n"))
	}
	return packets
}
