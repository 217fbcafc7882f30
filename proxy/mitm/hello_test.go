package mitm

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestPlainName(t *testing.T) {
	l63 := strings.Repeat("a", 63)
	l253 := strings.Join([]string{l63, l63, l63, strings.Repeat("b", 61)}, ".")
	for name, want := range map[string]string{
		"FOO.example": "foo.example", "a": "a", "1.2.3.4": "1.2.3.4", "xn--bcher-kva.example": "xn--bcher-kva.example", "a-b.c-1": "a-b.c-1",
		l63 + ".x": l63 + ".x", l253: l253,
		"": "", "foo_bar.example": "", "a.": "", ".a": "", "a..b": "", "-a": "", "a-": "", "a.-b": "", "[::1]": "", "::1": "", "a b": "", "a\x00b": "",
		"é": "", "K": "k", "*.x": "", l63 + "a.x": "", l253 + "b": "", "a:443": "", "a/b": "", "\u212a": "", "@[`{": "",
	} {
		got, ok := PlainName(name)
		if got != want || ok != (want != "") {
			t.Errorf("TLS-25: PlainName(%q) = %q, %v", name, got, ok)
		}
	}
}

// TestHandshakeNames is case 6: which certificate is shown for which server name (TLS-25).
func TestHandshakeNames(t *testing.T) {
	ca := newTestCA(t)
	for _, row := range []struct {
		sni, target string
		targetOnly  bool
		leaf        string
		hello       Hello
	}{
		{"foo.example", "target.example", false, "foo.example", Hello{ServerName: "foo.example"}},
		{"FOO.example", "target.example", false, "foo.example", Hello{ServerName: "foo.example"}},
		{"", "target.example", false, "target.example", Hello{}},
		{"foo_bar.example", "target.example", false, "target.example", Hello{Unreadable: true}},
		{"foo bar", "target.example", false, "target.example", Hello{Unreadable: true}},
		{"foo.example", "target.example", true, "target.example", Hello{ServerName: "foo.example"}},
		{"foo_bar.example", "foo_bar.example", true, "foo_bar.example", Hello{Unreadable: true}},
		{"", "192.0.2.1", false, "192.0.2.1", Hello{}},
		{"", "2001:db8::1", false, "2001:db8::1", Hello{}},
	} {
		state, err, got := shake(t, ca, row.target, row.targetOnly, &tls.Config{ServerName: row.sni, InsecureSkipVerify: true})
		if err != nil || got.err != nil {
			t.Errorf("TLS-25 %+v: %v, %v", row, err, got.err)
			continue
		}
		leaf := state.PeerCertificates[0]
		if err := leaf.VerifyHostname(row.leaf); err != nil || len(leaf.DNSNames)+len(leaf.IPAddresses) != 1 {
			t.Errorf("TLS-25 %+v: %v", row, err)
		}
		if got.hello != row.hello {
			t.Errorf("TLS-25 %+v: hello %+v", row, got.hello)
		}
	}
}

// TestHandshakeVersions holds which versions there are (TLS-24), and that srt asks for no certificate of the client.
func TestHandshakeVersions(t *testing.T) {
	ca := newTestCA(t)
	for version, accepted := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		asked := false
		_, err, got := shake(t, ca, "a.example", false, &tls.Config{RootCAs: poolOf(ca), ServerName: "a.example", MinVersion: version, MaxVersion: version,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				asked = true
				return &tls.Certificate{}, nil
			}})
		if (err == nil) != accepted || (got.err == nil) != accepted || asked {
			t.Errorf("TLS-24 %s: %v, %v, asked for a certificate: %v", tls.VersionName(version), err, got.err, asked)
		}
	}
}

// TestALPN is case 7 (TLS-24). The alert is looked for in the bytes on the wire.
func TestALPN(t *testing.T) {
	ca := newTestCA(t)
	for _, row := range []struct {
		offer []string
		want  string // "": none; "alert": refused
	}{
		{nil, ""}, {[]string{"http/1.1"}, "http/1.1"}, {[]string{"h2", "http/1.1"}, "http/1.1"}, {[]string{"h2"}, "alert"},
		{[]string{"h2", "http/1.0"}, "alert"}, {[]string{"HTTP/1.1"}, "alert"}, {[]string{"acme-tls/1"}, "alert"},
	} {
		state, err, got := shake(t, ca, "a.example", false, &tls.Config{RootCAs: poolOf(ca), ServerName: "a.example", NextProtos: row.offer})
		if row.want != "alert" {
			if err != nil || state.NegotiatedProtocol != row.want {
				t.Errorf("TLS-24 %v: %q, %v", row.offer, state.NegotiatedProtocol, err)
			}
			continue
		}
		if err == nil || got.err == nil {
			t.Errorf("TLS-24 %v: %v, %v", row.offer, err, got.err)
		}
		if got.hello.ServerName != "a.example" {
			t.Errorf("the name is lost when the handshake fails: %+v", got.hello)
		}
		client, server := net.Pipe()
		go func() {
			_, _, _ = ca.Handshake(t.Context(), server, "a.example", false)
			server.Close()
		}()
		hello := clientHello(t, &tls.Config{ServerName: "a.example", NextProtos: row.offer})
		go func() { _, _ = client.Write(hello) }()
		if wire, err := io.ReadAll(client); err != nil || !bytes.Equal(wire, []byte{21, 3, 3, 0, 2, 2, 120}) {
			t.Errorf("TLS-24 %v: on the wire % x, %v; want a fatal alert 120", row.offer, wire, err)
		}
	}
}

// clientHello is the first flight of a client.
func clientHello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	go func() {
		_ = tls.Client(client, config).Handshake()
		client.Close()
	}()
	defer server.Close()
	head := make([]byte, 5)
	if _, err := io.ReadFull(server, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(head[3:]))
	if _, err := io.ReadFull(server, body); err != nil {
		t.Fatal(err)
	}
	return append(head, body...)
}

// TestResumption holds that a client that comes again resumes its session, in both versions, and does not where another
// certificate would be shown, which a resumed session could not.
func TestResumption(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		ca := newTestCA(t)
		config := &tls.Config{RootCAs: poolOf(ca), ServerName: "a.example", MaxVersion: version, ClientSessionCache: tls.NewLRUClientSessionCache(8)}
		for i, row := range []struct {
			target     string
			targetOnly bool
			resumed    bool
		}{{"a.example", false, false}, {"a.example", false, true}, {"b.example", false, true}, {"a.example", true, true}} {
			state, err, got := shake(t, ca, row.target, row.targetOnly, config)
			if err != nil || state.DidResume != row.resumed || got.hello.ServerName != "a.example" {
				t.Errorf("TLS-24 %s, connection %d: resumed %v, %+v, %v", tls.VersionName(version), i, state.DidResume, got, err)
			}
		}
		// The certificate is now that of the target b.example: the session of a.example must not stand for it.
		state, _, _ := shake(t, ca, "b.example", true, config)
		if state.DidResume {
			t.Errorf("TLS-25 %s: a session with one certificate was resumed where another had to be shown", tls.VersionName(version))
		}
		// Another session's authority knows none of the tickets.
		other := newTestCA(t)
		config.RootCAs = poolOf(other)
		if state, err, _ := shake(t, other, "a.example", false, config); state.DidResume || err != nil {
			t.Errorf("TLS-24 %s: a session of another authority was resumed: %v", tls.VersionName(version), err)
		}
	}
}

// TestHandshakeEnds holds that a silent client ends with its context, and that a later end of it changes nothing (TLS-42).
func TestHandshakeEnds(t *testing.T) {
	ca := newTestCA(t)
	for _, sent := range [][]byte{nil, {0x16}, {0x16, 3, 1}, {0x16, 3, 1, 0x40, 0}} {
		client, server := net.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		go func() { _, _ = client.Write(sent) }()
		if _, _, err := ca.Handshake(ctx, server, "a.example", false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("TLS-42 % x: %v", sent, err)
		}
		cancel()
		client.Close()
		server.Close()
	}
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	clientSide := tls.Client(client, &tls.Config{RootCAs: poolOf(ca), ServerName: "a.example"})
	go func() { _ = clientSide.Handshake() }()
	conn, _, err := ca.Handshake(ctx, server, "a.example", false)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	go func() { _, _ = conn.Write([]byte("late")) }()
	got := make([]byte, 4)
	if _, err := io.ReadFull(clientSide, got); err != nil || string(got) != "late" {
		t.Errorf("TLS-42: the end of the handshake's time ended the connection: %q, %v", got, err)
	}
}

// TestNoKeyLog holds that SSLKEYLOGFILE is of no effect (TLS-23).
func TestNoKeyLog(t *testing.T) {
	path := t.TempDir() + "/keys"
	t.Setenv("SSLKEYLOGFILE", path)
	ca := newTestCA(t)
	if _, err, _ := shake(t, ca, "a.example", false, &tls.Config{RootCAs: poolOf(ca), ServerName: "a.example"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil || ca.configFor("a.example", &tls.ClientHelloInfo{}).KeyLogWriter != nil {
		t.Error("TLS-23: keys of connections were written")
	}
}

// TestOtherClients asks clients of other makes to verify strictly (TLS-26) and to split their ClientHello (the limits of
// the chapter).
func TestOtherClients(t *testing.T) {
	ca := given(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if tlsConn, _, err := ca.Handshake(t.Context(), conn, "127.0.0.1", false); err == nil {
					_, _ = tlsConn.Write([]byte("served\n"))
					_ = tlsConn.CloseWrite()
				}
			}()
		}
	}()
	caPath := file(t, "ca.crt", ca.PEM())
	host, port, _ := net.SplitHostPort(ln.Addr().String())
	const script = `
import socket, ssl, sys
ca, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
for name in ("api.example.com", host):
    context = ssl.create_default_context(cafile=ca)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    with context.wrap_socket(socket.create_connection((host, port)), server_hostname=name) as s:
        print(name, s.version(), s.recv(100).decode().strip())
`
	out := run(t, "python3", "-c", script, caPath, host, port)
	if !strings.Contains(out, "api.example.com TLSv1.3 served") || !strings.Contains(out, host+" TLSv1.3 served") {
		t.Errorf("TLS-26: %s", out)
	}
	for _, version := range []string{"-tls1_2", "-tls1_3"} {
		s := exec.Command("openssl", "s_client", "-connect", ln.Addr().String(), "-servername", "api.example.com", "-verify_hostname", "api.example.com",
			"-x509_strict", "-verify_return_error", "-CAfile", caPath, "-max_send_frag", "512", "-ign_eof", version)
		s.Stdin = strings.NewReader("")
		out, err := s.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("Verify return code: 0 (ok)")) || !bytes.Contains(out, []byte("served")) {
			t.Errorf("TLS-26 %s: %v: %s", version, err, out)
		}
	}
}

// TestSplitHello holds that a ClientHello in several records is read like one in one (the limits of the chapter).
func TestSplitHello(t *testing.T) {
	ca := newTestCA(t)
	hello := clientHello(t, &tls.Config{ServerName: "split.example"})
	var split []byte
	for body := hello[5:]; len(body) > 0; {
		n := min(7, len(body))
		split = append(split, 0x16, 3, 1, 0, byte(n))
		split = append(split, body[:n]...)
		body = body[n:]
	}
	client, server := net.Pipe()
	go func() {
		_, _ = client.Write(split)
		_, _ = io.CopyN(io.Discard, client, 100) // the server has answered, so it has read the hello
		client.Close()
	}()
	_, got, err := ca.Handshake(t.Context(), server, "target.example", false)
	if got.ServerName != "split.example" || err == nil {
		t.Errorf("TLS-25: %+v, %v", got, err)
	}
	server.Close()
}
