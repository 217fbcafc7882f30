package main

import (
	"context"
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
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// output collects what srt proxy reports and tells where it serves.
type output struct {
	mu      sync.Mutex
	text    strings.Builder
	serving chan string
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	for line := range strings.Lines(string(p)) {
		if where, ok := strings.CutPrefix(strings.TrimSpace(line), "srt proxy: serving "); ok {
			o.serving <- where
		}
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// launch runs a host with srt and returns a client that goes through it, and what ends it.
func launch(t *testing.T, h *host) (client *http.Client, stop func() string) {
	t.Helper()
	h.srt = filepath.Join(t.TempDir(), "srt")
	if out, err := exec.Command("go", "build", "-o", h.srt, "../../cmd/srt").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	h.listen = "127.0.0.1:0"
	report := &output{serving: make(chan string, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.run(ctx, report) }()
	select {
	case where := <-report.serving:
		proxy := &url.URL{Scheme: "http", Host: where}
		client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}}
	case err := <-ended:
		t.Fatalf("srt proxy does not serve: %v\n%s", err, report)
	}
	return client, func() string {
		client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ends with %v\n%s", err, report)
		}
		return report.String()
	}
}

// PRX-3 to PRX-5, PRX-41, PRX-53: over two pipes, with a lifeline.
func TestDecider_PRX(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.RequestURI+" "+string(body))
		fmt.Fprint(w, "hi")
	}))
	defer server.Close()
	client, stop := launch(t, &host{policy: policy{allow: []string{"127.0.0.1"}, forbid: "secret"}})
	for _, test := range []struct {
		method, url, body string
		status            int
		deny              string
	}{
		{"GET", server.URL + "/a", "", 200, ""},
		{"POST", server.URL + "/b", "harmless", 200, ""},
		{"POST", server.URL + "/c", "a secret", 403, "decider"},
		{"POST", server.URL + "/d", strings.Repeat("x", maxBody+1), 413, "decider"},
		{"GET", "http://localhost/", "", 403, "host_not_allowed"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, test.url, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != test.status || resp.Header.Get("X-Deny-Reason") != test.deny {
			t.Errorf("%s %s: %d %q", test.method, test.url, resp.StatusCode, resp.Header.Get("X-Deny-Reason"))
		}
	}
	if want := "GET /a ;POST /b harmless"; strings.Join(got, ";") != want {
		t.Errorf("the server got %q", got)
	}
	if said := stop(); !strings.HasSuffix(said, "srt proxy: stopped (lifeline closed)\n") {
		t.Errorf("case 29: it says %q", said)
	}
}

// PRX-12, PRX-45: a credential that the client never has, in a tunnel that is inspected.
func TestDecider_Credential_PRX45(t *testing.T) {
	ca, pool := authority(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.StartTLS()
	defer server.Close()
	client, stop := launch(t, &host{ca: ca, policy: policy{allow: []string{"127.0.0.1"}}})
	client.Transport.(*http.Transport).TLSClientConfig.RootCAs = pool
	// The server's certificate is from no authority that this machine knows: the request gets no further than its handshake.
	resp, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusBadGateway {
		t.Errorf("PRX-14: %d", resp.StatusCode)
	}
	stop()
	p := policy{credentialHost: "a.com", credential: "s"}
	if v := p.allowed(message{Host: "a.com", SNI: "a.com"}); v.Credential != "s" || v.Cred == "" {
		t.Errorf("%+v", v)
	}
	for _, m := range []message{{Host: "a.com"}, {Host: "b.com", SNI: "b.com"}} {
		if v := p.allowed(m); v.Credential != "" || v.Cred != "" {
			t.Errorf("%+v: %+v", m, v)
		}
	}
}

// authority makes a certificate authority in a file, and a pool with it.
func authority(t *testing.T) (path string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "example"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...)
	path = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return path, pool
}
