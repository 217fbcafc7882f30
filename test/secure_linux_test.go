package test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// authority is a certificate authority of a test: of the servers that it starts, or one that is given to srt.
type authority struct {
	t         testing.TB
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
	pem, text string // the certificate, and the key, as PEM
}

// newAuthority makes one that ends so far from now.
func newAuthority(t testing.TB, name string, ends time.Duration) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(ends), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	a.cert, a.key = a.sign(template, nil)
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.text = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	return a
}

// sign makes a key and its certificate, of the authority or by itself.
func (a *authority) sign(template, parent *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// keyLine is a line of the key, which nobody but its holder has.
func (a *authority) keyLine() string { return strings.Split(a.text, "\n")[1] }

// secure is a web server with TLS on the host's loopback, whose authority srt trusts. It remembers what arrived, the body as a
// header of the name Test-Body, and repeats nothing of it.
func (b *box) secure() (*recorder, *authority) {
	b.t.Helper()
	ca := newAuthority(b.t, "srt test servers", time.Hour)
	cert, key := ca.sign(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, ca.cert)
	rec := &recorder{}
	rec.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Header.Set("Test-Body", string(body))
		rec.mu.Lock()
		rec.got = append(rec.got, r)
		rec.mu.Unlock()
		fmt.Fprintln(w, "secure")
	}))
	rec.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}}
	rec.StartTLS()
	rec.port = rec.URL[strings.LastIndex(rec.URL, ":")+1:]
	b.t.Cleanup(rec.Close)
	b.trusts(ca)
	return rec, ca
}

// trusts makes an authority one of the host's, for srt, in the place of all others.
func (b *box) trusts(ca *authority) {
	b.t.Helper()
	path := b.dir + "/host-roots.pem"
	b.must(os.WriteFile(path, []byte(ca.pem), 0o644))
	b.env = append(b.env, "SSL_CERT_FILE="+path)
}

// ownTemp gives srt a directory for temporary files of its own, and tells what lies in it.
func (b *box) ownTemp() (left func() string) {
	b.t.Helper()
	dir := b.dir + "/own-tmp"
	b.mkdir(dir, 0o755)
	b.env = append(b.env, "TMPDIR="+dir)
	return func() string { return strings.Join(namesIn(dir), " ") }
}
