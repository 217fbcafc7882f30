package runtime

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/proxy/credential"
	"github.com/srt-sandbox/srt/proxy/mitm"
	"github.com/srt-sandbox/srt/runtime/config"
)

// masking is a configuration that masks a variable, for requests to one host.
func masking(name string) func(*config.Config) {
	return func(c *config.Config) {
		c.Network.AllowedDomains = []string{"a.example", "b.example"}
		c.Network.TLSTerminate = &config.TLSTerminate{}
		c.Credentials = maskOf(name, "a.example")
	}
}

func maskOf(name string, hosts ...string) *config.Credentials {
	return &config.Credentials{EnvVars: []config.EnvCredential{{Name: name, Credential: config.Credential{Mode: config.ModeMask, InjectHosts: hosts}}}}
}

// TLS-8, TLS-11, LIB-35, LIB-36: the authority can be read, its key cannot, and the files end with the session.
func TestCA_TLS8_TLS11_LIB35_LIB36(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := newSession(t, masking("TOKEN"))
	ca := s.CA()
	block, rest := pem.Decode(ca.PEM)
	if block == nil || block.Type != "CERTIFICATE" || len(rest) != 0 {
		t.Fatalf("%s", ca.PEM)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil || !cert.IsCA {
		t.Errorf("%v, %v", cert, err)
	}
	bundle, err := os.ReadFile(ca.Bundle)
	if err != nil || !bytes.Contains(bundle, bytes.TrimSpace(ca.PEM)) || bytes.Contains(bundle, []byte("PRIVATE")) || filepath.Dir(filepath.Dir(ca.Bundle)) != dir {
		t.Errorf("%s: %d bytes, %v", ca.Bundle, len(bundle), err)
	}
	ca.PEM[0]++
	if again := s.CA(); bytes.Equal(again.PEM, ca.PEM) || again.Bundle != ca.Bundle {
		t.Error("the getter gave what it keeps")
	}
	succeed(t, s.Close())
	succeed(t, s.Close())
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if s.CA() == nil {
		t.Error("LIB-36: the getter does not answer after the end")
	}
	if s := newSession(t, nil); s.CA() != nil {
		t.Errorf("TLS-1: %+v", s.CA())
	}
}

// LIB-3, LIB-6, TLS-3, TLS-7: a start that fails, or is cancelled, leaves nothing.
func TestFailedStartsLeaveNoFiles_LIB3_LIB6_TLS7(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	cfg := config.Default()
	cfg.Network.TLSTerminate = &config.TLSTerminate{CACertPath: dir + "/missing.pem", CAKeyPath: dir + "/missing.key"}
	if s, err := New(t.Context(), cfg); s != nil || !errors.Is(err, mitm.ErrCA) || !strings.Contains(err.Error(), "missing.pem (ENOENT)") {
		t.Errorf("%v, %v", s, err)
	}
	cfg.Network.TLSTerminate = &config.TLSTerminate{}
	ctx, cancel := context.WithCancelCause(t.Context())
	s, err := New(ctx, cfg, func(*options) { cancel(errCause) }) // after the first look at the context
	if s != nil || !errors.Is(err, errCause) {
		t.Errorf("%v, %v", s, err)
	}
	cfg.Network.MitmProxy = &config.MitmProxy{SocketPath: "/s", Domains: []string{"a.example"}}
	if _, err := New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "mutually exclusive") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TLS-2, TLS-8: where the files cannot be written no command is started, and the session ends as any.
func TestNoFilesNoCommand_TLS8(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/missing")
	s := newSession(t, masking("TOKEN"))
	c := sh(t, s, "true")
	c.Dir = t.TempDir()
	var failed *LaunchError
	if err := c.Start(); !errors.As(err, &failed) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if s.CA() != nil {
		t.Error("commands are told of files that there are not")
	}
	succeed(t, s.Close())
}

// TLS-2, CRED-37, LIB-21, LIB-23, CLI-32: what an update changes of all this, and what it says that it does not.
func TestUpdates_TLS2_CRED37_LIB21(t *testing.T) {
	passes := config.SigV4{Streaming: config.SigV4Passthrough, Presigned: config.SigV4Passthrough, SigV4A: config.SigV4Passthrough}
	for _, with := range []bool{true, false} {
		s := newSession(t, func(c *config.Config) {
			masking("TOKEN")(c)
			if !with {
				c.Credentials, c.Network.TLSTerminate = nil, nil
			}
		})
		before := s.current().rules
		if notLive, err := s.Update(t.Context(), s.Config()); err != nil || len(notLive) != 0 || s.current().rules != before {
			t.Errorf("with %v: an update that changes nothing: %v, %v", with, notLive, err)
		}
		next := s.Config()
		masking("OTHER")(next)
		next.Network.TLSTerminate = &config.TLSTerminate{ExcludeDomains: []string{"b.example"}, MaxTunnels: 3, HandshakeTimeoutMs: 500}
		next.Credentials.SigV4 = passes
		notLive, err := s.Update(t.Context(), next)
		fixed := []string{"network.tlsTerminate", "network.tlsTerminate.excludeDomains", "network.tlsTerminate.maxTunnels",
			"network.tlsTerminate.handshakeTimeoutMs", "credentials.sigv4"}
		if with {
			fixed = nil
		}
		if err != nil || !slices.Equal(notLive, fixed) {
			t.Errorf("with %v: not live %q, %v; want %q", with, notLive, err, fixed)
		}
		r := s.current().rules
		if len(r.Termination.Exclude) != 1 || r.Termination.MaxTunnels != 3 || r.Termination.HandshakeTimeout.Milliseconds() != 500 {
			t.Errorf("with %v: %+v", with, r.Termination)
		}
		if want := (credential.SigV4Policy{Streaming: with, Presigned: with, SigV4A: with}); r.SigV4 != want {
			t.Errorf("with %v: %+v", with, r.SigV4)
		}
		if ends := s.CA() != nil; ends != with {
			t.Errorf("with %v: TLS is terminated: %v", with, ends)
		}
		// CRED-37: entries count from the next launch, whatever the session began with.
		if got := shown(t, s, nil, "$OTHER"); got == "planted" || !strings.HasPrefix(got, "fake_value_") {
			t.Errorf("with %v: a command sees %q", with, got)
		}
	}
}

// shown is what a command sees of variables of its environment, which all have one value.
func shown(t *testing.T, s *Sandbox, o *config.Override, words string) string {
	t.Helper()
	c := sh(t, s, "echo "+words)
	c.Dir, c.Override = t.TempDir(), o
	c.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + c.Dir, "TOKEN=planted", "OTHER=planted"}
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// LIB-13, CRED-1, CRED-6: an override replaces the section and says which hosts are meant where an entry does not; a later command
// has the same stand-in, for the same hosts.
func TestOverrides_LIB13_CRED1_CRED6(t *testing.T) {
	s := newSession(t, masking("TOKEN"))
	first := shown(t, s, nil, "$TOKEN $OTHER")
	if again := shown(t, s, nil, "$TOKEN $OTHER"); again != first || !strings.HasPrefix(first, "fake_value_") || !strings.HasSuffix(first, " planted") {
		t.Errorf("%q, then %q", first, again)
	}
	if got := shown(t, s, &config.Override{Credentials: maskOf("OTHER", "b.example")}, "$TOKEN $OTHER"); !strings.HasPrefix(got, "planted fake_value_") {
		t.Errorf("another section: %q", got)
	}
	if got := shown(t, s, &config.Override{Credentials: &config.Credentials{}}, "$TOKEN $OTHER"); got != "planted planted" {
		t.Errorf("an empty section: %q", got)
	}
	general := &config.Override{Credentials: maskOf("TOKEN"), Network: config.NetworkOverride{AllowedDomains: []string{"*.c.example"}}}
	if got := shown(t, s, general, "$TOKEN"); got == strings.Fields(first)[0] || !strings.HasPrefix(got, "fake_value_") {
		t.Errorf("for other hosts: %q, as for the first", got)
	}
	for host, want := range map[string]bool{"a.example": true, "b.example": true, "x.c.example": true, "c.example": false, "d.example": false} {
		h, err := config.CanonicalHost(host)
		succeed(t, err)
		if got := s.secrets.At(h) != nil; got != want {
			t.Errorf("a value may go to %s: %v", host, got)
		}
	}
	bad := &config.Override{Credentials: maskOf("TOKEN", "elsewhere.example")}
	c := sh(t, s, "true")
	c.Override = bad
	var invalid *config.Error
	if err := c.Start(); !errors.As(err, &invalid) {
		t.Errorf("CFG-72: %v", err)
	}
	// LIB-35: nothing can be put in or masked after the end.
	succeed(t, s.Close())
	h, err := config.CanonicalHost("a.example")
	succeed(t, err)
	if _, err := s.secrets.Mask(credential.Spec{Credentials: maskOf("TOKEN")}); s.secrets.At(h) != nil || !errors.Is(err, credential.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TLS-4: beside an external proxy the authority, the variables and the masks stay.
func TestExternalProxy_TLS4(t *testing.T) {
	s := newSession(t, func(c *config.Config) {
		masking("TOKEN")(c)
		c.Network.HTTPProxyPort = 1
	})
	if got := shown(t, s, nil, `$TOKEN $SSL_CERT_FILE`); !strings.HasPrefix(got, "fake_value_") || !strings.HasSuffix(got, s.CA().Bundle) {
		t.Errorf("%q", got)
	}
}

// What Explain says of TLS, rules and credentials; nothing of it is a value.
func TestExplainTLSAndCredentials(t *testing.T) {
	t.Setenv("TOKEN", "planted")
	s := newSession(t, func(c *config.Config) {
		masking("TOKEN")(c)
		c.Network.TLSTerminate.ExcludeDomains = []string{"b.example"}
		c.Network.RequestRules = []config.RequestRule{{Hosts: []string{"a.example"}, Paths: []string{"/x/**"}, Action: "allow", Reason: "just this"}}
	})
	e, err := s.Explain(t.Context())
	succeed(t, err)
	var text strings.Builder
	succeed(t, e.WriteText(&text))
	for _, want := range []string{"TLS ended by", "CN=sandbox-runtime ephemeral CA", "b.example", s.CA().Bundle, "allow any method a.example /x/**: just this",
		`variable "TOKEN"`, "real value for a.example", "TOKEN=fake_value_", "SSL_CERT_FILE=" + s.CA().Bundle} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(text.String(), "planted") {
		t.Error("it has the value")
	}
	if t.Failed() {
		t.Log(text.String())
	}
}

// TLS-8: what a session left that was killed goes with the next one, and nothing that another one still has, or somebody else made.
func TestSweepsWhatWasLeft_TLS8(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	old := time.Now().Add(-time.Hour)
	made := func(name string, mode os.FileMode, when time.Time) string {
		path := dir + "/" + name
		succeed(t, os.Mkdir(path, 0o700))
		succeed(t, os.WriteFile(path+"/ca.crt", nil, 0o600))
		succeed(t, os.Chmod(path, mode))
		succeed(t, os.Chtimes(path, when, when))
		return path
	}
	left, fresh := made("srt-ca-left", 0o700, old), made("srt-ca-fresh", 0o700, time.Now())
	open, other := made("srt-ca-open", 0o755, old), made("other", 0o700, old)
	succeed(t, os.Symlink(other, dir+"/srt-ca-link"))
	running := newSession(t, masking("TOKEN"))
	held := filepath.Dir(running.CA().Bundle)
	succeed(t, os.Chtimes(held, old, old))
	next := newSession(t, masking("TOKEN"))
	_ = next.CA()
	succeed(t, next.Close()) // which ends the sweep, but not before it has seen as few names as there are here
	for path, stays := range map[string]bool{left: false, fresh: true, open: true, other + "/ca.crt": true, dir + "/srt-ca-link": true, held: true} {
		if _, err := os.Lstat(path); (err == nil) != stays {
			t.Errorf("%s: %v, want it to stay: %v", path, err, stays)
		}
	}
}
