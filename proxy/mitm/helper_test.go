package mitm

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// newTestCA makes an ephemeral authority.
func newTestCA(t testing.TB) *CA {
	t.Helper()
	ca, err := Generate(GenerateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// poolOf is a client that trusts one authority.
func poolOf(ca *CA) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.Certificate())
	return pool
}

// rsaKey is an RSA key of 2048 bits, made once: it takes a while.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func ecKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// caTemplate is a good authority's certificate, for a test to change.
func caTemplate() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber:          newSerial(),
		Subject:               pkix.Name{CommonName: "test CA"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour * 1000),
		BasicConstraintsValid: true,
		IsCA:                  true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
}

// selfSigned is a certificate as PEM.
func selfSigned(t testing.TB, template *x509.Certificate, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// pkcs8 is a key as PEM.
func pkcs8(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// file writes a file of its own directory and returns its path.
func file(t testing.TB, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// result is what the server's side of a handshake came to.
type result struct {
	hello Hello
	err   error
}

// shake runs a handshake of a client with an authority, to a byte of application data from the server, so that a client
// has its session ticket. It returns what both sides saw.
//
//nolint:staticcheck // ST1008: the server's result is no error, and the client's comes first
func shake(t testing.TB, ca *CA, target string, targetOnly bool, config *tls.Config) (tls.ConnectionState, error, result) {
	t.Helper()
	client, server := net.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan result, 1)
	go func() {
		defer server.Close()
		conn, hello, err := ca.Handshake(ctx, server, target, targetOnly)
		if err == nil {
			_, err = conn.Write([]byte("x"))
		}
		done <- result{hello, err}
	}()
	defer client.Close()
	conn := tls.Client(client, config)
	var one [1]byte
	_, err := conn.Read(one[:])
	state := conn.ConnectionState()
	client.Close()
	return state, err, <-done
}

func containsAny(text []byte, markers ...string) string {
	for _, m := range markers {
		if bytes.Contains(text, []byte(m)) {
			return m
		}
	}
	return ""
}

// run runs a program that the test needs and returns what it said.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return string(out)
}
