package proxy

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// realProxy is a proxy of another make that runs as a child, on loopback.
type realProxy struct {
	userinfo string // what it wants, as in a URL
	port     int
	tlsPort  int            // 0: it has none
	roots    *x509.CertPool // that verify tlsPort
	resolves bool           // far.test is 127.0.0.1 for it
	// unreachable is what a program sees when this proxy cannot reach a destination.
	unreachable syscall.Errno
}

// needProgram finds a program of another package, and skips the test where that is not installed.
func needProgram(t *testing.T, name, debianPackage string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin") {
		if path := filepath.Join(dir, name); isExecutable(path) {
			return path
		}
	}
	t.Skipf("got no %s, want the Debian package %s", name, debianPackage)
	return ""
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// runProxy starts a program and waits until its ports accept.
func runProxy(t *testing.T, ports []int, path string, args ...string) {
	t.Helper()
	cmd := exec.Command(path, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // so that it takes away what it made outside its directory
		kill := time.AfterFunc(testPatience, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		<-ended
		kill.Stop()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of its group
		if t.Failed() {
			t.Logf("%s: %s", path, output.Bytes())
		}
	})
	for _, port := range ports {
		if !settles(func() bool {
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err == nil {
				c.Close()
			}
			return err == nil
		}) {
			t.Fatalf("%s does not accept on port %d", path, port)
		}
	}
}

// peerDir is a directory that a child may read that has given up root.
func peerDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := socketDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func startTinyproxy(t *testing.T, auth bool) *realProxy {
	path := needProgram(t, "tinyproxy", "tinyproxy")
	p := &realProxy{userinfo: "u:p.1", port: closedPort(t), unreachable: syscall.EHOSTUNREACH}
	conf := fmt.Sprintf("Port %d\nListen 127.0.0.1\nTimeout 60\nAllow 127.0.0.1\nMaxClients 50\nDisableViaHeader Yes\nLogLevel Info\n", p.port)
	if auth {
		conf += "BasicAuth u p.1\n"
	}
	dir := peerDir(t, map[string]string{"conf": conf})
	runProxy(t, []int{p.port}, path, "-d", "-c", filepath.Join(dir, "conf"))
	return p
}

func startSquid(t *testing.T) *realProxy {
	path := needProgram(t, "squid", "squid")
	pool, cert := authorityFor(t, "127.0.0.1", "parent.test")
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	p := &realProxy{
		userinfo: "u:p%40%3A%2F", // what has to be percent-encoded in a URL (case30)
		port:     closedPort(t), tlsPort: closedPort(t), roots: pool, resolves: true, unreachable: syscall.EHOSTUNREACH,
	}
	dir := peerDir(t, map[string]string{
		"pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})) +
			string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
		"hosts": "127.0.0.1 localhost\n127.0.0.1 far.test\n",
		// A helper gets "user password" on a line, either with unsafe characters percent-encoded.
		"auth": "while read -r line; do case $line in 'u p@:/' | 'u p%40%3A%2F') echo OK ;; *) echo ERR ;; esac; done\n",
	})
	conf := fmt.Sprintf(`http_port 127.0.0.1:%d
https_port 127.0.0.1:%d tls-cert=%[3]s/pem tls-key=%[3]s/pem
auth_param basic program /bin/sh %[3]s/auth
auth_param basic children 2 startup=1
auth_param basic realm peer
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
hosts_file %[3]s/hosts
cache deny all
access_log none
cache_log /dev/null
pid_filename none
coredump_dir %[3]s
memory_cache_shared off
via off
forwarded_for delete
shutdown_lifetime 0 seconds
`, p.port, p.tlsPort, dir)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	// Its shared memory is named after the service: that of another squid, perhaps of another user, must not be in the way.
	service := fmt.Sprintf("srt%d", p.port)
	runProxy(t, []int{p.port, p.tlsPort}, path, "-N", "-d1", "-n", service, "-f", filepath.Join(dir, "conf"))
	return p
}

// farServer is a server that is reached by an address of this host beyond loopback, as loopback never goes through a
// parent. It echoes, unless it is asked by HTTP: then it answers with what it got.
func farServer(t *testing.T) (addr netip.Addr, port int) {
	t.Helper()
	var own netip.Addr
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if got, _ := netip.AddrFromSlice(a.(*net.IPNet).IP); got.Unmap().Is4() && !got.IsLoopback() {
			own = got.Unmap()
		}
	}
	if !own.IsValid() {
		t.Skipf("got no IPv4 address beyond loopback among %v, want one that a parent can connect to", addrs)
	}
	return own, serveOn(t, "0.0.0.0:0", func(c *net.TCPConn) {
		first := make([]byte, 1)
		if _, err := io.ReadFull(c, first); err != nil {
			return
		}
		if first[0] != 'G' && first[0] != 'P' {
			_, _ = c.Write(first)
			_, _ = io.Copy(c, c)
			return
		}
		request, err := rawRequest(readerAfter(first, c))
		if err == nil {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(request), request)
		}
	}).Port
}

// peers are the ways to reach the proxies that are installed.
func peers(t *testing.T, run func(t *testing.T, p *realProxy, url string, roots *x509.CertPool)) {
	t.Run("tinyproxy", func(t *testing.T) {
		p := startTinyproxy(t, true)
		run(t, p, fmt.Sprintf("127.0.0.1:%d", p.port), nil)
	})
	t.Run("squid", func(t *testing.T) {
		p := startSquid(t)
		t.Run("http", func(t *testing.T) { run(t, p, fmt.Sprintf("127.0.0.1:%d", p.port), nil) })
		t.Run("https", func(t *testing.T) { run(t, p, fmt.Sprintf("https://127.0.0.1:%d", p.tlsPort), p.roots) })
	})
}

// parentURL puts user information into the URL of a peer.
func parentURL(url, userinfo string) string {
	if rest, ok := strings.CutPrefix(url, "https://"); ok {
		return "https://" + userinfo + "@" + rest
	}
	return "http://" + userinfo + "@" + url
}

func TestNET61_case30_RealParents(t *testing.T) {
	addr, port := farServer(t)
	closed := closedPort(t)
	peers(t, func(t *testing.T, p *realProxy, url string, roots *x509.CertPool) {
		hosts := []string{addr.String()}
		if p.resolves {
			hosts = append(hosts, "far.test")
		}
		c := capture(t, policy.NetworkRules{AllowedDomains: hosts}, func(o *Options) {
			o.Parent, o.Resolver = mustParent(t, parentURL(url, p.userinfo), "", ""), &fakeResolver{}
		})
		c.srv().roots = roots
		for _, host := range hosts {
			dst := netip.AddrPortFrom(addr, uint16(port))
			if host != addr.String() {
				dst = c.addresses(host, port)[1]
			}
			for name, open := range map[string]func() *peer{
				"CONNECT": func() *peer { return c.tunnel(fmt.Sprintf("%s:%d", host, port)) },
				"SOCKS": func() *peer {
					p := c.dial()
					p.send("%s%s", socksLogin("srt", testToken), socksName(1, host, port))
					p.want(socksAdmitted + socksAnswer(0))
					return p
				},
				"captured": func() *peer { return c.open(dst) },
			} {
				t.Run(name+" "+host, func(t *testing.T) {
					p := open()
					want := strings.Repeat("0123456789abcdef", 1<<14) // 256 KiB
					go func() { _, _ = io.WriteString(p, want) }()
					p.want(want)
				})
			}
			t.Run("plain "+host, func(t *testing.T) {
				target := fmt.Sprintf("%s:%d", host, port)
				for _, body := range []string{"", "some body"} {
					method := "GET"
					if body != "" {
						method = "PUT"
					}
					p := c.dial()
					p.send("%s http://%s/a?b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n%s", method, target, len(body), auth, body)
					got := p.rest()
					if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.Contains(got, method+" /a?b HTTP/1.") || !strings.HasSuffix(got, body) {
						t.Errorf("%q", got)
					}
					if !strings.Contains(got, "\r\nHost: "+target+"\r\n") || strings.Contains(got, "Basic") {
						t.Errorf("the server got %q", got)
					}
				}
			})
			t.Run("unreachable "+host, func(t *testing.T) {
				if got := c.connectTo(fmt.Sprintf("%s:%d", host, closed)).rest(); got != failed502 {
					t.Errorf("%q", got)
				}
				w, err := c.Judge(testPID, netip.AddrPortFrom(dst.Addr(), uint16(closed)))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.Dial(t.Context()); Errno(err) != p.unreachable {
					t.Errorf("%v, errno %v", err, Errno(err))
				}
			})
		}
		c.wantLines()
	})
}

func TestNET61_RealParentsRefuseBadCredentials(t *testing.T) {
	addr, port := farServer(t)
	peers(t, func(t *testing.T, _ *realProxy, url string, roots *x509.CertPool) {
		for _, userinfo := range []string{"u:wrong", "", "srt:" + testToken} {
			parent := url
			if userinfo != "" {
				parent = parentURL(url, userinfo)
			}
			c := capture(t, policy.NetworkRules{AllowedDomains: []string{addr.String()}}, func(o *Options) { o.Parent = mustParent(t, parent, "", "") })
			c.srv().roots = roots
			target := fmt.Sprintf("%s:%d", addr, port)
			if got := c.connectTo(target).rest(); got != failed502 {
				t.Errorf("%q: CONNECT: %q", userinfo, got)
			}
			p := c.dial()
			p.send("GET http://%s/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", target, auth)
			if got := p.rest(); !strings.HasPrefix(got, "HTTP/1.1 407 ") && !strings.HasPrefix(got, "HTTP/1.1 401 ") ||
				strings.Contains(got, "Proxy-Authenticate") {
				t.Errorf("%q: plain: %q", userinfo, got)
			}
			w, err := c.Judge(testPID, netip.MustParseAddrPort(target))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Dial(t.Context()); Errno(err) != syscall.ECONNREFUSED {
				t.Errorf("%q: captured: %v", userinfo, err)
			}
			c.wantLines()
		}
	})
}
