package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/relay"
)

// capturedTLS is a capture of a server that terminates.
func capturedTLS(t *testing.T, change ...func(*Options)) *capturing {
	t.Helper()
	ours, theirs := authorities()
	return capture(t, onlyTest, append([]func(*Options){func(o *Options) {
		o.Terminate = &Termination{CA: ours, Roots: func() *x509.CertPool { return poolOf(theirs) }}
		o.Resolver = resolves("name.test", "127.0.0.1")
	}}, change...)...)
}

func TestCapturedTLSIsTerminated(t *testing.T) {
	store, fakes := masking(t, map[string]string{"GH_TOKEN": secretToken})
	o := serveOrigin(t, "name.test", nil)
	c := capturedTLS(t, func(opts *Options) { opts.Credentials = store })
	s := shakeOn(c.open(c.addresses("name.test", o.port)[0]), "name.test")
	for i := range 2 {
		status, _, _ := s.ask("GET /%d HTTP/1.1\r\nHost: x\r\nA: %s\r\n\r\n", i, fakes["GH_TOKEN"])
		if got := o.got(); status != 200 || !strings.Contains(got[i], "A: "+secretToken+"\r\n") {
			t.Errorf("%d, %q", status, got)
		}
	}
	if conns, _ := o.count(); conns != 1 {
		t.Errorf("%d connections: the one that was dialled carries the upstream leg", conns)
	}
	if status, _, _ := s.ask("CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n"); status != 501 {
		t.Error(status)
	}
	s.Close()
	c.settled()
	c.wantAll()
}

func TestCapturedTLSDialsAnewWhatHasEnded(t *testing.T) {
	first := true
	ended := make(chan struct{})
	_, theirs := authorities()
	leaf, err := theirs.Leaf("name.test")
	if err != nil {
		t.Fatal(err)
	}
	o := &origin{t: t}
	o.port = serveEach(t, func(conn *net.TCPConn) { // one connection at a time
		if first {
			first = false
			conn.Close()
			close(ended)
			return
		}
		secured := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*leaf}})
		if secured.Handshake() == nil {
			o.serve(secured)
		}
	}).Port
	c := capturedTLS(t)
	way, err := c.Judge(testPID, c.addresses("name.test", o.port)[0])
	if err != nil {
		t.Fatal(err)
	}
	w, err := way.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-ended
	tun := newTunnel(c.srv(), w.way.asking, w.way.verdict.Host)
	tun.ready = w.conn
	settles(func() bool { return !relay.Quiet(w.conn) })
	conn, err := tun.dialTarget(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	<-c.srv().slots
	w.release()
	c.settled()
}

func TestCapturedConnectionsThatAreNotTLS(t *testing.T) {
	_, port := echo(t)
	greeter := serveEach(t, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "220 hello\r\n")
		_, _ = io.Copy(c, c)
	})
	for _, refuse := range []bool{false, true} {
		c := capturedTLS(t, func(o *Options) { o.RefuseOpaqueTunnels = refuse })
		speaks := c.open(c.addresses("name.test", port)[0])
		speaks.send("SSH-2.0-x\r\n")
		ends := c.open(c.addresses("name.test", port)[0])
		ends.send("hi")
		ends.CloseWrite()
		listens := c.open(c.addresses("name.test", greeter.Port)[0])
		probe := c.open(c.addresses("name.test", port)[0]) // as programs do that try several addresses at once
		probe.Close()
		if refuse {
			for _, p := range []*peer{speaks, ends, listens} {
				if b, err := io.ReadAll(p.br); isTimeout(err) || len(b) > 0 {
					t.Errorf("%q, %v", b, err)
				}
			}
			c.settled()
			lines := c.lines()
			if len(lines) != 3 || !strings.HasSuffix(lines[0], " (tunnel carries no TLS and cannot be inspected)") {
				t.Errorf("%q", lines)
			}
			continue
		}
		speaks.want("SSH-2.0-x\r\n")
		if got := ends.rest(); got != "hi" {
			t.Errorf("%q", got)
		}
		listens.want("220 hello\r\n") // a server that speaks first is not waited for
		listens.send("\x16\x03\x01")
		listens.want("\x16\x03\x01")
		for _, p := range []*peer{speaks, ends, listens} {
			p.Close()
		}
		c.settled()
		c.wantAll()
	}
}

func TestCapturedConnectionsThatTheServerResets(t *testing.T) {
	opened := make(chan struct{})
	server := serveEach(t, func(c *net.TCPConn) {
		<-opened
		_ = c.SetLinger(0)
	})
	c := capturedTLS(t)
	p := c.open(c.addresses("name.test", server.Port)[0])
	close(opened)
	if _, err := p.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
	c.settled()
}

func TestTLS17_REQ4_CapturedConnectionsToExcludedHosts(t *testing.T) {
	_, theirs := authorities()
	o := serveOrigin(t, "name.test", nil)
	for _, refuse := range []bool{false, true} {
		c := capturedTLS(t, func(opts *Options) {
			opts.RefuseOpaqueTunnels = refuse
			rules := opts.Policy()
			rules.Termination.Exclude = domains(t, "name.test")
		})
		dst := c.addresses("name.test", o.port)[0]
		if refuse {
			if _, err := c.Judge(testPID, dst); !errors.Is(err, syscall.EACCES) {
				t.Errorf("%v", err)
			}
			c.wantAll(fmt.Sprintf("deny http-request CONNECT name.test:%d (this proxy does not tunnel CONNECTs it cannot inspect)", o.port))
			continue
		}
		s := shakeOn(c.open(dst), "name.test", func(conf *tls.Config) { conf.RootCAs = poolOf(theirs) })
		if status, _, _ := s.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"); status != 200 {
			t.Error(status)
		}
	}
}

func TestTLS41_CapturedConnectionsTakeSlots(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	c := capturedTLS(t, func(opts *Options) { opts.Policy().Termination.MaxTunnels = 1 })
	dst := c.addresses("name.test", o.port)[0]
	first := shakeOn(c.open(dst), "name.test")
	for range 2 {
		p := c.open(dst)
		p.send("\x16\x03\x01\x02\x00")
		if b, err := io.ReadAll(p.br); isTimeout(err) || len(b) > 0 {
			t.Errorf("%q, %v", b, err)
		}
	}
	c.wantAll(fmt.Sprintf("deny http-request CONNECT name.test:%d (%s)", o.port, reasonTunnels(1)))
	first.Close()
	c.settled()
}

func TestCapturedLoopbackOfTheHostIsDialledAsMeant(t *testing.T) {
	o := serveOrigin(t, "127.0.0.1", nil)
	c := capturedTLS(t, func(opts *Options) { opts.Resolver = resolves("none.test") })
	s := shakeOn(c.open(netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", o.port))), "127.0.0.1")
	if status, _, _ := s.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"); status != 200 {
		t.Error(status)
	}
}
