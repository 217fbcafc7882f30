package mitm

import (
	"crypto/elliptic"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// FuzzClientHello gives a handshake arbitrary bytes as the first flight of a client that then closes. It must end, and the
// server name it reports must be plain or none (TLS-25).
func FuzzClientHello(f *testing.F) {
	ca := newTestCA(f)
	for _, config := range []*tls.Config{
		{ServerName: "a.example"}, {InsecureSkipVerify: true}, {ServerName: "foo_bar.example"}, {ServerName: "a.example", NextProtos: []string{"h2"}},
		{ServerName: "a.example", MaxVersion: tls.VersionTLS12}, {ServerName: strings.Repeat("a", 300)},
	} {
		f.Add(clientHello(f, config))
	}
	f.Add([]byte("SSH-2.0-x\r\n"))
	f.Add([]byte{0x16, 3, 1, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, flight []byte) {
		client, server := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, client) }() // an alert must not wait for a client that is still writing
		go func() {
			_, _ = client.Write(flight)
			client.Close()
		}()
		_, hello, err := ca.Handshake(t.Context(), server, "target.example", false)
		server.Close()
		if err == nil {
			t.Error("a handshake of one flight succeeded")
		}
		if name, ok := PlainName(hello.ServerName); hello.ServerName != "" && (!ok || name != hello.ServerName || hello.Unreadable) {
			t.Errorf("TLS-25: %+v", hello)
		}
	})
}

// FuzzFromPEM gives arbitrary texts for an authority: it is usable, or the error is one of its class (TLS-11).
func FuzzFromPEM(f *testing.F) {
	key := ecKey(f, elliptic.P256())
	cert, keyText := selfSigned(f, caTemplate(), key), pkcs8(f, key)
	f.Add(cert, keyText)
	f.Add(append(cert, keyText...), append(cert, keyText...))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"), []byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----"))
	f.Fuzz(func(t *testing.T, cert, key []byte) {
		ca, err := FromPEM(cert, key)
		if err != nil {
			if !errors.Is(err, ErrCA) {
				t.Errorf("TLS-11: %v", err)
			}
			return
		}
		if _, err := ca.Leaf("a.example"); err != nil {
			t.Errorf("TLS-6: accepted, but unusable: %v", err)
		}
	})
}

// FuzzCertificateBlocks gives arbitrary text for a file of certificates: what comes out can be read back as it is, and
// nothing but base64 between the right lines comes out (TLS-12).
func FuzzCertificateBlocks(f *testing.F) {
	f.Add(appendCertificate(appendCertificate([]byte("# a comment\n"), []byte("first")), []byte("second")))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nQUJD\n-----BEGIN PRIVATE KEY-----\nQUJD\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nX: y\n\nQUJD\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ders := certificateBlocks(text)
		again := certificateBlocks(bundleText(ders))
		if len(again) != len(ders) {
			t.Fatalf("TLS-12: %d certificates were written and %d read", len(ders), len(again))
		}
		for i := range ders {
			if len(ders[i]) == 0 || string(ders[i]) != string(again[i]) {
				t.Errorf("TLS-12: certificate %d differs when read back", i)
			}
		}
	})
}
