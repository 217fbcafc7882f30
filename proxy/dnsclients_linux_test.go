package proxy

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// countingPackets counts the queries that arrive.
type countingPackets struct {
	net.PacketConn
	mu sync.Mutex
	n  int
}

func (c *countingPackets) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.PacketConn.ReadFrom(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return n, from, err
}

// take returns the count and starts anew.
func (c *countingPackets) take() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	c.n = 0
	return n
}

// program finds a real client that need not be installed everywhere.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("got no %s, want one in PATH to test against", name)
	}
	return path
}

// output runs a program and returns what it printed, its two streams together.
func output(t *testing.T, path string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	b, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(b)), err
}

// TestDNSWithRealClients asks by programs that bring a resolver of their own and can be told a port.
func TestDNSWithRealClients(t *testing.T) {
	for _, tc := range []struct {
		program string
		args    func(host, port string) []string
		want    string
	}{
		{"dig", func(h, p string) []string { return []string{"+short", "@" + h, "-p", p, "Dig.test", "A"} }, "198.18.0.1"},
		{"dig", func(h, p string) []string {
			return []string{"+short", "+tcp", "+dnssec", "@" + h, "-p", p, "dig.test", "AAAA"}
		}, "fd01:203:405:607::1"},
		{"dig", func(h, p string) []string { return []string{"+short", "+notcp", "@" + h, "-p", p, "-x", "127.0.0.1"} }, "localhost."},
		{"dig", func(h, p string) []string {
			return []string{"+noall", "+comments", "+noedns", "@" + h, "-p", p, "dig.test", "TXT"}
		}, "status: REFUSED"},
		{"dig", func(h, p string) []string {
			return []string{"+noall", "+comments", "@" + h, "-p", p, "dig.test", "HTTPS"}
		}, "status: NOERROR"},
		{"dig", func(h, p string) []string {
			return []string{"+noall", "+comments", "+edns=1", "+noednsneg", "@" + h, "-p", p, "dig.test", "A"}
		}, "status: BADVERS"},
		{"dig", func(h, p string) []string {
			return []string{"+noall", "+comments", "@" + h, "-p", p, "CH", "version.bind", "TXT"}
		}, "status: REFUSED"},
		{"dig", func(h, p string) []string { return []string{"+noall", "+comments", "@" + h, "-p", p, "a$b.test", "A"} }, "status: NXDOMAIN"},
		{"node", func(h, p string) []string { return []string{"-e", nodeResolve, h + ":" + p} },
			`["198.18.0.1"] ["fd01:203:405:607::1"] ["node.test"] ENOTFOUND EREFUSED`},
		{"python3", func(h, p string) []string { return []string{"-c", pythonQuery, h, p} }, "b'\\xc6\\x12\\x00\\x01'"},
	} {
		t.Run(tc.program, func(t *testing.T) {
			path := program(t, tc.program)
			host, port, _ := net.SplitHostPort(serveDNS(t, testDNS()))
			got, err := output(t, path, tc.args(host, port)...)
			if err != nil || !strings.Contains(got, tc.want) || strings.Contains(strings.ToLower(got), "warning") {
				t.Errorf("%v\n got %s\nwant %s", err, got, tc.want)
			}
		})
	}
}

// nodeResolve asks by c-ares.
const nodeResolve = `
const r = new (require('dns').promises.Resolver)();
r.setServers([process.argv[1]]);
const code = p => p.then(a => 'resolved ' + a, e => e.code);
(async () => {
  const a = await r.resolve4('node.test'), b = await r.resolve6('node.test'), c = await r.reverse(a[0]);
  console.log(JSON.stringify(a), JSON.stringify(b), JSON.stringify(c),
    await code(r.resolve4('a.123')), await code(r.resolveTxt('node.test')));
})();`

// pythonQuery sends a query made by hand and prints the address at the end of the answer.
const pythonQuery = `
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.sendto(b'\x12\x34\x01\0\0\1\0\0\0\0\0\0\2Py\4test\0\0\1\0\1', (sys.argv[1], int(sys.argv[2])))
r = s.recv(512)
assert r[:2] == b'\x12\x34' and b'\2Py\4test\0' in r, r
print(r[-4:])`

// inNamespace is set for the process that TestDNSWithSystemResolvers starts in namespaces of its own.
const inNamespace = "SRT_TEST_DNS_NAMESPACE"

// TestDNSWithSystemResolvers asks through getaddrinfo(3), which only knows port 53 and the files in /etc: in a network
// namespace with nothing but lo, and a mount namespace with a resolv.conf of its own.
func TestDNSWithSystemResolvers(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		systemResolvers(t)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestDNSWithSystemResolvers$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1", "SRT_TEST_DNS_DIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skipf("got no network and mount namespace (%v), want both", err)
	}
	err = cmd.Wait()
	t.Log(out.String())
	if err != nil {
		t.Error(err)
	}
}

// mountResolver makes the namespaces look like a sandbox's: lo up, and files that send every name to 127.0.0.1.
func mountResolver(t *testing.T) {
	t.Helper()
	fail := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	fail("socket", err)
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	fail("lo", err)
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	fail("SIOCSIFFLAGS", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr))

	fail("make mounts private", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	dir := os.Getenv("SRT_TEST_DNS_DIR")
	for name, content := range map[string]string{
		"resolv.conf":   "nameserver 127.0.0.1\n",
		"nsswitch.conf": "hosts: files dns\n",
		"hosts":         "127.0.0.1 localhost\n::1 localhost\n",
	} {
		file := filepath.Join(dir, name)
		fail(name, os.WriteFile(file, []byte(content), 0o644))
		fail("mount "+name, unix.Mount(file, "/etc/"+name, "", unix.MS_BIND, ""))
	}
}

// systemResolvers is the part of the test inside the namespaces.
func systemResolvers(t *testing.T) {
	mountResolver(t)
	udp, err := net.ListenPacket("udp4", "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp4", "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	counted := &countingPackets{PacketConn: udp}
	d := testDNS()
	served := make(chan error, 1)
	go func() { served <- d.Serve(counted, tcp) }()
	defer func() {
		d.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	for _, lookup := range systemLookups {
		t.Run(lookup.name, func(t *testing.T) {
			path, args := lookup.command(t)
			for _, tc := range []struct {
				host    string
				queries int // at most: no retry
				want    []string
			}{
				{"www.example.com", 2, []string{"www.example.com"}},
				{"Single", 2, []string{"single"}},
				{"a$b.test", 2, nil},
				{"a.123", 2, nil},
				{"app.localhost", 2, []string{""}},
				{"localhost", 0, []string{""}},
			} {
				counted.take()
				out, err := output(t, path, append(args, tc.host)...)
				queries := counted.take()
				if (err == nil) != (tc.want != nil) || queries > tc.queries {
					t.Errorf("%s: %v, %d queries, output %q", tc.host, err, queries, out)
				}
				found := 0
				for _, word := range strings.Fields(out) {
					addr, err := netip.ParseAddr(word)
					if err != nil {
						continue
					}
					found++
					if name, _ := d.names.Name(addr); tc.want == nil || name != tc.want[0] || addr.IsLoopback() != (name == "") {
						t.Errorf("%s: %v stands for %q", tc.host, addr, name)
					}
				}
				if tc.want != nil && found == 0 {
					t.Errorf("%s: no address in %q", tc.host, out)
				}
			}
		})
	}
}

// systemLookups are programs that print the addresses of the host in their last argument, or fail.
var systemLookups = []struct {
	name    string
	command func(*testing.T) (path string, args []string)
}{
	{"getent", func(t *testing.T) (string, []string) { return program(t, "getent"), []string{"ahosts"} }},
	{"node", func(t *testing.T) (string, []string) {
		return program(t, "node"), []string{"-e", `require('dns').lookup(process.argv[1], {all: true},
			(e, a) => { if (e) { console.log(e.code); process.exit(1) } a.forEach(x => console.log(x.address)) })`}
	}},
	{"python3", func(t *testing.T) (string, []string) {
		return program(t, "python3"), []string{"-c", "import socket, sys\n" +
			"print(*(a[4][0] for a in socket.getaddrinfo(sys.argv[1], 80, type=socket.SOCK_STREAM)))"}
	}},
	{"musl", func(t *testing.T) (string, []string) {
		cc := program(t, "musl-gcc")
		source := filepath.Join(t.TempDir(), "lookup.c")
		if err := os.WriteFile(source, []byte(lookupC), 0o600); err != nil {
			t.Fatal(err)
		}
		exe := strings.TrimSuffix(source, ".c")
		if out, err := output(t, cc, "-static", "-o", exe, source); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return exe, nil
	}},
}

// lookupC prints the addresses of a host.
const lookupC = `
#include <netdb.h>
#include <stdio.h>
int main(int argc, char **argv) {
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *r;
	if (getaddrinfo(argv[1], "80", &hints, &r)) return 1;
	for (; r; r = r->ai_next) {
		char text[64];
		getnameinfo(r->ai_addr, r->ai_addrlen, text, sizeof text, 0, 0, NI_NUMERICHOST);
		puts(text);
	}
	return 0;
}`

// Types that no resolver of names needs are refused; what those resolvers ask for by themselves is not.
func TestDNSRefusesOnlyWhatNamesDoNotNeed(t *testing.T) {
	d := testDNS()
	for _, kind := range []dnsmessage.Type{
		dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeHTTPS, dnsmessage.TypeSVCB, dnsmessage.TypePTR,
	} {
		for _, name := range []string{"a.test", "a$b.test", "", "localhost", "1.2.3.4"} {
			switch m := exchangeDNS(t, d, queryFor(name, kind)); m.RCode {
			case dnsmessage.RCodeSuccess, dnsmessage.RCodeNameError:
			default:
				t.Errorf("%q %v: %v", name, kind, m.RCode)
			}
		}
	}
}
