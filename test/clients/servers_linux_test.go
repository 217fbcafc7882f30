package clients

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Ports of the servers, the usual ones.
const (
	echoPort     = "7"
	sshPort      = "22"
	httpPort     = "80"
	httpsPort    = "443"
	rsyncPort    = "873"
	postgresPort = "5432"
	redisPort    = "6379"
)

// greeting is in every answer of the web servers.
const greeting = "hello from the server"

// serveWeb answers http and https (HTTP/1.1 and HTTP/2) with one greeting and with the repositories of the package managers
// and of git.
func (w *world) serveWeb(t *testing.T) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(out http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(out, "%s by %s\n", greeting, r.Proto)
	})
	mux.Handle("/git/", w.gitServer(t))
	w.servePackages(t, mux)
	w.servePrivate(t, mux)
	handler := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Proxy-Authorization", "Via", "X-Forwarded-For"} { // NET-30
			if got := r.Header.Get(name); got != "" {
				w.fault("%s %s%s arrived with %s: %q", r.Method, r.Host, r.URL, name, got)
			}
		}
		mux.ServeHTTP(out, r)
	})
	silent := log.New(io.Discard, "", 0) // clients that leave are no news
	plain := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: silent}
	secure := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: silent,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{w.certificate(t)}, MinVersion: tls.VersionTLS12}}
	t.Cleanup(func() { plain.Close(); secure.Close() })
	for _, l := range w.listen(t, httpPort) {
		go func() { _ = plain.Serve(l) }() // until the end of the test
	}
	for _, l := range w.listen(t, httpsPort) {
		go func() { _ = secure.ServeTLS(l, "", "") }()
	}
}

// gitServer serves the repositories for the web servers beneath /git/, for reading and writing.
func (w *world) gitServer(t *testing.T) http.Handler {
	t.Helper()
	program := &cgi.Handler{
		Path: gitBackend(t), Root: "/git",
		Env:    []string{"GIT_PROJECT_ROOT=" + w.path("git"), "GIT_HTTP_EXPORT_ALL=1", "HOME=" + w.dir, "PATH=/usr/bin:/bin"},
		Stderr: io.Discard,
	}
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // CGI tells a program the length beforehand (RFC 3875 section 4.1.2)
		if err != nil {
			w.fault("%s %s%s: %v", r.Method, r.Host, r.URL, err)
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		program.ServeHTTP(out, r)
	})
}

func gitBackend(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{"/usr/lib/git-core", "/usr/libexec/git-core"} {
		if path := filepath.Join(dir, "git-http-backend"); exists(path) {
			return path
		}
	}
	t.Fatal("got no git-http-backend, want it beside git (package git)")
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// path is a file or directory of the world.
func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// write writes a file of the world, with the directories to it, for everybody to read.
func (w *world) write(t *testing.T, name string, data []byte) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(w.path(name)), 0o755))
	must(t, os.WriteFile(w.path(name), data, 0o644))
}

// certificate makes an authority, whose certificate is the file ca.pem, and the servers' certificate.
func (w *world) certificate(t *testing.T) tls.Certificate {
	t.Helper()
	now := time.Now()
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour)}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	must(t, err)
	w.write(t, "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER}))

	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: domain}, DNSNames: []string{"*." + domain},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serveEcho answers one line with the greeting and that line.
func (w *world) serveEcho(t *testing.T) {
	t.Helper()
	for _, l := range w.listen(t, echoPort) {
		go accept(l, func(conn net.Conn) {
			defer conn.Close()
			if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				fmt.Fprintf(conn, "%s: %s", greeting, line)
			}
		})
	}
}

// relayTo serves a connection by a Unix socket of the world.
func (w *world) relayTo(name string) func(net.Conn) {
	return func(conn net.Conn) {
		defer conn.Close()
		server, err := net.Dial("unix", w.path(name))
		if err != nil {
			w.fault("%s: %v", name, err)
			return
		}
		defer server.Close()
		go func() {
			_, _ = io.Copy(server, conn)
			_ = server.(*net.UnixConn).CloseWrite()
		}()
		_, _ = io.Copy(conn, server) // either end may leave
	}
}

// serveAt serves every connection to a port of the servers.
func (w *world) serveAt(t *testing.T, port string, serve func(net.Conn)) {
	t.Helper()
	for _, l := range w.listen(t, port) {
		go accept(l, serve)
	}
}

// lines joins text for a file.
func lines(text ...string) []byte { return []byte(strings.Join(text, "\n") + "\n") }
