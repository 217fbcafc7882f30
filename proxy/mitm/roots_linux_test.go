package mitm

import (
	"bytes"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// environment is a LookupEnv over pairs.
func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// authority is a certificate of a name, as PEM.
func authority(t testing.TB, name string) []byte {
	t.Helper()
	template := caTemplate()
	template.Subject.CommonName = name
	return selfSigned(t, template, ecKey(t, elliptic.P256()))
}

// names are the common names of the certificates that roots hold, in order.
func names(t testing.TB, r *Roots) string {
	t.Helper()
	var all []string
	for _, root := range r.list {
		c, err := x509.ParseCertificate(root.der)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c.Subject.CommonName)
	}
	return strings.Join(all, " ")
}

func hostRoots(t testing.TB, o RootOptions) *Roots {
	t.Helper()
	r, err := HostRoots(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestHostRoots holds the order and the sources of TLS-12 and TLS-13.
func TestHostRoots(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, text ...[]byte) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Join(text, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b, c, d, e := authority(t, "a"), authority(t, "b"), authority(t, "c"), authority(t, "d"), authority(t, "e")
	key := pkcs8(t, ecKey(t, elliptic.P256()))
	single, node := put("single", a), put("node", key, b, []byte("text\n"), a)
	extra, keyOnly, garbage := put("extra", c, key), put("key", key), put("garbage", []byte("\x00\xff-----BEGIN"))
	put("dir/one.pem", d)
	put("dir/sub/not.pem", b)
	put("dir2/two.crt", e, d)
	for link, target := range map[string]string{"dir/0123.0": "one.pem", "dir/elsewhere.pem": "../extra", "dir/broken": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	var notes []string
	for _, row := range []struct {
		rule  string
		env   []string
		extra []string
		want  string
		notes []string
	}{
		{"TLS-13 file", []string{"SSL_CERT_FILE", single}, nil, "a", nil},
		{"TLS-13 directories", []string{"SSL_CERT_DIR", dir + "/dir:" + dir + "/dir2"}, nil, "c d e", nil},
		{"TLS-13 both", []string{"SSL_CERT_FILE", single, "SSL_CERT_DIR", dir + "/dir2"}, nil, "a e d", nil},
		{"TLS-12 Node's and further ones, each once", []string{"SSL_CERT_FILE", single, "NODE_EXTRA_CA_CERTS", node}, []string{extra, single, extra}, "a b c", nil},
		{"case 3: missing, and certificate with key", []string{"SSL_CERT_FILE", single}, []string{dir + "/missing", extra, keyOnly, garbage, dir}, "a c", []string{
			"warning: network.tlsTerminate.extraCaCertPaths: cannot read " + dir + "/missing (ENOENT); it is left out",
			"warning: network.tlsTerminate.extraCaCertPaths: " + keyOnly + " has no PEM CERTIFICATE block; it is left out",
			"warning: network.tlsTerminate.extraCaCertPaths: " + garbage + " has no PEM CERTIFICATE block; it is left out",
			"warning: network.tlsTerminate.extraCaCertPaths: cannot read " + dir + " (EISDIR); it is left out"}},
		{"TLS-13 a directory that is not there", []string{"SSL_CERT_FILE", single, "SSL_CERT_DIR", dir + "/none"}, nil, "a",
			[]string{"SSL_CERT_DIR: cannot read " + dir + "/none (ENOENT); it is left out"}},
	} {
		notes = nil
		r := hostRoots(t, RootOptions{LookupEnv: environment(row.env...), Extra: row.extra, Debug: func(s string) { notes = append(notes, s) },
			Warn: func(s string) { notes = append(notes, "warning: "+s) }})
		if got := names(t, r); got != row.want {
			t.Errorf("%s: %q, want %q", row.rule, got, row.want)
		}
		if strings.Join(notes, "\n") != strings.Join(row.notes, "\n") {
			t.Errorf("%s: notes %q", row.rule, notes)
		}
	}
}

// TestSystemRoots holds that without variables the system's own list is taken (TLS-13), whatever is in the environment of
// this process, and that the zero options read that environment.
func TestSystemRoots(t *testing.T) {
	r := hostRoots(t, RootOptions{LookupEnv: environment()})
	if len(r.list) < 20 {
		t.Errorf("TLS-13: %d roots", len(r.list))
	}
	if again := hostRoots(t, RootOptions{LookupEnv: environment("SSL_CERT_FILE", "/nowhere")}); len(again.list) != len(r.list) {
		t.Errorf("TLS-13: %d roots where SSL_CERT_FILE names no file, %d without it", len(again.list), len(r.list))
	}
	t.Setenv("SSL_CERT_FILE", file(t, "a", authority(t, "a")))
	t.Setenv("SSL_CERT_DIR", "")
	t.Setenv("NODE_EXTRA_CA_CERTS", "")
	if got := names(t, hostRoots(t, RootOptions{})); got != "a" {
		t.Errorf("TLS-13: the environment of the process gives %q", got)
	}
}

// TestBuiltInRoots holds that a host without any list has Mozilla's (TLS-13), its constraints included.
func TestBuiltInRoots(t *testing.T) {
	s := newRootSet(func(string) {})
	s.builtIn()
	want, constrained := 0, 0
	for r := range bundle.Roots() {
		want++
		if r.Constraint != nil {
			constrained++
		}
	}
	got := 0
	for _, r := range s.list {
		if r.constraint != nil {
			got++
		}
	}
	if len(s.list) != want || want < 100 || got != constrained {
		t.Errorf("TLS-13: %d roots of %d, %d constraints of %d", len(s.list), want, got, constrained)
	}
}

// TestPool holds that the upstream legs trust what the bundle has (TLS-36), and not the authority of the session.
func TestPool(t *testing.T) {
	ca, extra := newTestCA(t), newTestCA(t)
	r := hostRoots(t, RootOptions{LookupEnv: environment("SSL_CERT_FILE", file(t, "a", append(authority(t, "a"),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("not one that Go parses")})...))), Extra: []string{file(t, "x", extra.PEM())}})
	if first := r.Pool(); first != r.Pool() {
		t.Error("TLS-36: the pool is parsed more than once")
	}
	for _, row := range []struct {
		ca      *CA
		trusted bool
	}{{extra, true}, {ca, false}} {
		leaf, err := row.ca.Leaf("up.example")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: r.Pool(), DNSName: "up.example"}); (err == nil) != row.trusted {
			t.Errorf("TLS-36: trusted %v, %v", row.trusted, err)
		}
	}
}
