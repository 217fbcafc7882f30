package mitm

import (
	"bytes"
	"crypto/elliptic"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestWriteFiles holds what a session's directory is (TLS-8, TLS-12).
func TestWriteFiles(t *testing.T) {
	parent := t.TempDir()
	ca := newTestCA(t)
	r := hostRoots(t, RootOptions{LookupEnv: environment("SSL_CERT_FILE", file(t, "a", append(authority(t, "a"), ca.PEM()...)))})
	old := syscall.Umask(0o077)
	f, err := WriteFiles(parent, ca, r, true)
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(f.Dir) != parent || !strings.HasPrefix(filepath.Base(f.Dir), "srt-ca-") || len(filepath.Base(f.Dir)) != 7+24 {
		t.Errorf("TLS-8: directory %s", f.Dir)
	}
	for path, mode := range map[string]os.FileMode{f.Dir: os.ModeDir | 0o700, f.Bundle: 0o644, f.CA: 0o644, f.Java: 0o644} {
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != mode {
			t.Errorf("TLS-8: %s: %v, %v", path, info.Mode(), err)
		}
	}
	if entries, err := os.ReadDir(f.Dir); err != nil || len(entries) != 3 {
		t.Errorf("TLS-8: %v, %v", entries, err)
	}
	text, err := os.ReadFile(f.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	if want := append(ca.PEM(), bundleText([][]byte{r.list[0].der})...); !bytes.Equal(text, want) {
		t.Errorf("TLS-12: the bundle is not the authority and the roots, each once:\n%s", text)
	}
	if text, err := os.ReadFile(f.CA); err != nil || !bytes.Equal(text, ca.PEM()) {
		t.Errorf("TLS-8: ca.crt: %v\n%s", err, text)
	}
	second, err := WriteFiles(parent, ca, r, true)
	if err != nil || second.Dir == f.Dir {
		t.Fatalf("TLS-8: %v", err)
	}
	for range 2 {
		for _, files := range []*Files{f, second} {
			if err := files.Remove(); err != nil {
				t.Errorf("TLS-8: %v", err)
			}
		}
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("TLS-8: %v is left, %v", left, err)
	}
}

// TestWriteFilesOfGiven holds that a given authority has no file of its own, and that the certificates beside it, which lead
// to its root, are in the bundle, but nothing else of its files (TLS-8, TLS-12).
func TestWriteFilesOfGiven(t *testing.T) {
	key := ecKey(t, elliptic.P256())
	root := authority(t, "root")
	text := bytes.Join([][]byte{pkcs8(t, key), selfSigned(t, caTemplate(), key), root}, nil)
	ca, err := Load(file(t, "ca.crt", text), file(t, "ca.key", text))
	if err != nil {
		t.Fatal(err)
	}
	f, err := WriteFiles(t.TempDir(), ca, hostRoots(t, RootOptions{LookupEnv: environment("SSL_CERT_FILE", file(t, "a", authority(t, "a")))}), false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Remove()
	got, err := os.ReadFile(f.Bundle)
	if err != nil || f.CA != "" || bytes.Count(got, []byte("BEGIN")) != 3 || !bytes.Contains(got, root) || !bytes.HasPrefix(got, ca.PEM()) {
		t.Errorf("TLS-12: CA %q, %v\n%s", f.CA, err, got)
	}
	scalar, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{f.Bundle, f.Java} {
		text, err := os.ReadFile(path)
		if found := containsAny(text, "PRIVATE KEY", string(scalar)); err != nil || found != "" {
			t.Errorf("TLS-8: %s holds key material, %v", path, err)
		}
	}
}

// TestNoKeyOnDisk holds that the key of an ephemeral authority is in none of the files, in any encoding (TLS-8, case 4).
func TestNoKeyOnDisk(t *testing.T) {
	ca := newTestCA(t)
	f, err := WriteFiles(t.TempDir(), ca, hostRoots(t, RootOptions{LookupEnv: environment("SSL_CERT_FILE", file(t, "a", authority(t, "a")))}), true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Remove()
	signer := ca.signer.(interface{ Bytes() ([]byte, error) })
	scalar, err := signer.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	leafScalar, err := ca.leafKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{f.Bundle, f.CA, f.Java} {
		text, err := os.ReadFile(path)
		if err != nil || containsAny(text, "PRIVATE", string(scalar), string(leafScalar)) != "" {
			t.Errorf("TLS-8: %s holds a key, %v", path, err)
		}
		for _, der := range certificateBlocks(text) {
			if containsAny(der, string(scalar), string(leafScalar)) != "" {
				t.Errorf("TLS-8: %s holds a key", path)
			}
		}
	}
}

func TestWriteFilesFails(t *testing.T) {
	ca, r := newTestCA(t), hostRoots(t, RootOptions{LookupEnv: environment()})
	for _, parent := range []string{filepath.Join(t.TempDir(), "none"), file(t, "file", nil)} {
		if f, err := WriteFiles(parent, ca, r, true); err == nil || f != nil || !strings.Contains(err.Error(), "the trust bundle cannot be written") {
			t.Errorf("TLS-8: %v, %v", f, err)
		}
	}
}

// TestEnvironment holds the names of TLS-14 and of the limits of the chapter.
func TestEnvironment(t *testing.T) {
	f := &Files{Dir: "/d", Bundle: "/d/b", Java: "/d/j"}
	var got []string
	for _, v := range f.Environment() {
		got = append(got, v.Name)
		if v.Value != "/d/b" {
			t.Errorf("TLS-14: %s=%s", v.Name, v.Value)
		}
	}
	want := "NODE_EXTRA_CA_CERTS SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE PIP_CERT GIT_SSL_CAINFO AWS_CA_BUNDLE CARGO_HTTP_CAINFO " +
		"DENO_CERT CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE NIX_SSL_CERT_FILE HTTPLIB2_CA_CERTS GRPC_DEFAULT_SSL_ROOTS_FILE_PATH PERL_LWP_SSL_CA_FILE BUNDLE_SSL_CA_CERT " +
		"npm_config_cafile NPM_CONFIG_CAFILE"
	if strings.Join(got, " ") != want {
		t.Errorf("TLS-14: %v", got)
	}
	if o := f.JavaOptions(); o != "-Djavax.net.ssl.trustStore=/d/j -Djavax.net.ssl.trustStoreType=PKCS12" {
		t.Errorf("TLS-14: %s", o)
	}
}

// TestTrustStore holds that tools of two makes read the trust store whole.
func TestTrustStore(t *testing.T) {
	ca := newTestCA(t)
	r := hostRoots(t, RootOptions{LookupEnv: environment()})
	f, err := WriteFiles(t.TempDir(), ca, r, true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Remove()
	want := len(r.list) + 1
	out := run(t, "openssl", "pkcs12", "-in", f.Java, "-nomacver", "-nokeys", "-passin", "pass:")
	if got := strings.Count(out, "BEGIN CERTIFICATE"); got != want {
		t.Errorf("openssl reads %d certificates of %d", got, want)
	}
	if got := certificateBlocks([]byte(out)); !bytes.Equal(got[0], ca.certificate.Raw) {
		t.Error("the first certificate is not the authority")
	}
	out = run(t, "keytool", "-list", "-storetype", "PKCS12", "-keystore", f.Java, "-storepass", "")
	if got := strings.Count(out, "trustedCertEntry"); got != want {
		t.Errorf("keytool reads %d certificates of %d: %.300s", got, want, out)
	}
}

// TestJavaTrusts has a JVM fetch a page, with nothing but the options: from a directory whose name needs quotes, and with
// the trust of the JVM itself as a check that the test can fail.
func TestJavaTrusts(t *testing.T) {
	ca := newTestCA(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go serveHTTP(t, ca, ln)
	parent := filepath.Join(t.TempDir(), `it's a "place"`)
	if err := os.Mkdir(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := WriteFiles(parent, ca, hostRoots(t, RootOptions{LookupEnv: environment()}), true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Remove()
	program := file(t, "Fetch.java", []byte(`
public class Fetch {
	public static void main(String[] a) throws Exception {
		System.out.println(new String(new java.net.URL(a[0]).openConnection().getInputStream().readAllBytes()));
	}
}`))
	url := "https://127.0.0.1:" + strconv.Itoa(ln.Addr().(*net.TCPAddr).Port) + "/"
	with, err := javaCommand(t, f.JavaOptions(), program, url).CombinedOutput()
	if err != nil || !bytes.Contains(with, []byte("served")) {
		t.Errorf("TLS-14: a JVM with %s: %v: %.2000s", f.JavaOptions(), err, with)
	}
	without, err := javaCommand(t, "-Dnothing=1", program, url).CombinedOutput()
	if err == nil || !bytes.Contains(without, []byte("SSLHandshakeException")) {
		t.Errorf("a JVM that was not told trusts the authority: %s", without)
	}
}

// serveHTTP answers one HTTP request on each connection, behind a handshake of an authority for 127.0.0.1.
func serveHTTP(t testing.TB, ca *CA, ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			tlsConn, _, err := ca.Handshake(t.Context(), conn, "127.0.0.1", false)
			if err != nil {
				return
			}
			_, _ = tlsConn.Read(make([]byte, 4096))
			_, _ = tlsConn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nserved"))
			_ = tlsConn.CloseWrite()
		}()
	}
}

// javaCommand is a JVM that runs a source file, with options as a sandbox hands them over.
func javaCommand(t testing.TB, options, program, url string) *exec.Cmd {
	t.Helper()
	c := exec.Command("java", program, url)
	c.Env = append(os.Environ(), "JAVA_TOOL_OPTIONS="+options)
	return c
}
