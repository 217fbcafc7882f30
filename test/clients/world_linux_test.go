package clients

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// The network of the test, drawn once:
//
//	sandbox ──srt── host 10.203.255.1 ══ veth ══ 10.203.255.2 servers, which answer for 10.203.0.0/16
//	                 │                                        and for fd5a:203:1::/64
//	                 127.0.0.1: what a case of its own has there
//
// Each run of a program gets a name and addresses that no other run has, so that what arrives there is its own.
const (
	domain   = "srt.test"
	maxHosts = 1000

	unreachable = "unreachable." + domain // the host has a route that says so
	routeless   = "routeless." + domain   // the host has no route
)

// hostCommands are for ip(8), with the servers' network as a file, goodbyeCommands undo them, and serverCommands are for
// ip(8) in that network.
const hostCommands = `
link set lo up
link add srt-host type veth peer name srt-net netns %s
addr add 10.203.255.1/30 dev srt-host
link set srt-host up
route add 10.203.0.0/16 via 10.203.255.2
route add unreachable 10.204.0.0/16
-6 addr add fd5a:203::1/64 dev srt-host nodad
-6 route add fd5a:203:1::/64 via fd5a:203::2`

const goodbyeCommands = `
link del srt-host
route del unreachable 10.204.0.0/16`

const serverCommands = `
link set lo up
addr add 10.203.255.2/30 dev srt-net
link set srt-net up
route add local 10.203.0.0/16 dev lo
-6 addr add fd5a:203::2/64 dev srt-net nodad
-6 route add local fd5a:203:1::/64 dev lo`

// world is everything that the programs of the tests talk to. Its methods may be called from many goroutines.
type world struct {
	dir    string // absolute; what every account may read: certificates, repositories, compiled programs
	inside chan func()
	six    bool // the kernel has IPv6
	hosts  atomic.Int64

	mu      sync.Mutex
	arrived map[string]int     // connections, by the address and port they came to
	private map[string]*visits // by the name of the server
	faults  []string
}

// endpoint is a server as one run of a program sees it.
type endpoint struct {
	host, port string // as the program is told; the port may be ""
	allow      string // the entry of allowedDomains that admits it
	places     []string
}

// newWorld makes the network and starts the servers. All of it ends with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "srt-test-clients-")
	must(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	must(t, os.Chmod(dir, 0o755))
	w := &world{dir: dir, inside: make(chan func()), arrived: map[string]int{}, private: map[string]*visits{}}
	_, err = os.Stat("/proc/net/if_inet6")
	w.six = err == nil
	ready := make(chan error)
	go w.serveThread(ready)
	must(t, <-ready)
	t.Cleanup(func() { close(w.inside) })
	var network string
	w.in(func() { network = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid()) })
	must(t, w.ip(fmt.Sprintf(hostCommands, network)))
	t.Cleanup(func() {
		if err := w.ip(goodbyeCommands); err != nil {
			t.Error(err)
		}
	})
	w.in(func() { err = w.ip(serverCommands) })
	must(t, err)
	w.writeHosts(t)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serveThread is the one thread in the network of the servers. It ends, and with it what it started, with the world.
func (w *world) serveThread(ready chan<- error) {
	runtime.LockOSThread() // for good: the thread is no use to anybody else
	ready <- unix.Unshare(unix.CLONE_NEWNET)
	for f := range w.inside {
		f()
	}
}

// in runs f in the network of the servers: sockets it makes and processes it starts stay there.
func (w *world) in(f func()) {
	done := make(chan struct{})
	w.inside <- func() { defer close(done); f() }
	<-done
}

// ip runs ip(8) for each line.
func (w *world) ip(lines string) error {
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		args := strings.Fields(line)
		if args[0] == "-6" && !w.six {
			continue
		}
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.TrimSpace(line), err, out)
		}
	}
	return nil
}

// writeHosts lets the host know the names of the servers, and no other.
func (w *world) writeHosts(t *testing.T) {
	t.Helper()
	text := []byte("127.0.0.1 localhost\n10.204.0.1 " + unreachable + "\n10.205.0.1 " + routeless + "\n")
	for n := range maxHosts {
		for _, a := range w.addresses(n) {
			text = fmt.Appendf(text, "%s %s\n", a, hostName(n))
		}
	}
	for target, data := range map[string][]byte{
		"/etc/hosts":       text,
		"/etc/resolv.conf": []byte("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), // nobody answers
	} {
		target, err := filepath.EvalSymlinks(target)
		must(t, err)
		source := filepath.Join(w.dir, filepath.Base(target))
		must(t, os.WriteFile(source, data, 0o644))
		must(t, unix.Mount(source, target, "", unix.MS_BIND, ""))
		t.Cleanup(func() {
			if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
}

func hostName(n int) string { return fmt.Sprintf("h%d.%s", n, domain) }

func (w *world) addresses(n int) []netip.Addr {
	all := []netip.Addr{netip.AddrFrom4([4]byte{10, 203, byte(n / 250), byte(1 + n%250)})}
	if w.six {
		all = append(all, netip.MustParseAddr(fmt.Sprintf("fd5a:203:1::%x", n+1)))
	}
	return all
}

// named is a server by a name that nobody has used yet.
func (w *world) named() endpoint {
	n := int(w.hosts.Add(1))
	if n >= maxHosts {
		panic("more runs than names: raise maxHosts")
	}
	e := endpoint{host: hostName(n), allow: hostName(n)}
	for _, a := range w.addresses(n) {
		e.places = append(e.places, a.String())
	}
	return e
}

// literal is a server by its IPv4 address alone, which lies in NO_PROXY.
func (w *world) literal() endpoint {
	e := w.named()
	e.host, e.allow = e.places[0], e.places[0]
	return e
}

// literal6 is a server by its IPv6 address alone, in the brackets that URLs and settings have around it.
func (w *world) literal6(t *testing.T) endpoint {
	t.Helper()
	if !w.six {
		t.Skip("got a kernel without IPv6, want one with it")
	}
	e := w.named()
	e.host = "[" + e.places[1] + "]"
	e.allow = e.host
	return e
}

// onLoopback is a server on a port of the host's loopback that nobody has used yet, for as long as the test.
func (w *world) onLoopback(t *testing.T, serve func(net.Conn)) endpoint {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go accept(&counted{l, w}, serve)
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return endpoint{host: "127.0.0.1", port: port, allow: "127.0.0.1:" + port, places: []string{l.Addr().String()}}
}

// listen gives listeners of a port at every address of the servers, which count what arrives.
func (w *world) listen(t *testing.T, port string) []net.Listener {
	t.Helper()
	var all []net.Listener
	for network, host := range map[string]string{"tcp4": "0.0.0.0", "tcp6": "::"} {
		if network == "tcp6" && !w.six {
			continue
		}
		var l net.Listener
		var err error
		w.in(func() { l, err = net.Listen(network, net.JoinHostPort(host, port)) })
		must(t, err)
		t.Cleanup(func() { l.Close() })
		all = append(all, &counted{l, w})
	}
	return all
}

// counted is a listener that counts.
type counted struct {
	net.Listener
	w *world
}

func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	to := conn.LocalAddr().(*net.TCPAddr)
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.arrived[to.IP.String()]++
	l.w.arrived[to.String()]++
	return conn, nil
}

// arrivals is how many connections have come to an endpoint.
func (w *world) arrivals(e endpoint) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, place := range e.places {
		n += w.arrived[place]
	}
	return n
}

// fault remembers what a server saw and should not have.
func (w *world) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func accept(l net.Listener, serve func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return // closed with the test
		}
		go serve(conn)
	}
}
