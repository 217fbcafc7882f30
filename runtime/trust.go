package runtime

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/proxy/mitm"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// trust is what a session ends TLS with, and what it tells its commands to trust (TLS-5 to TLS-14). It is fixed for the life
// of the session (TLS-2, LIB-23). A nil one is that of a session that ends no TLS, and costs nothing (TLS-1).
type trust struct {
	ca    *mitm.CA
	roots *mitm.Roots
	files *mitm.Files
	// Of a given authority, absolute: the files with its certificate and with its key. What holds a key is with the keys.
	certificates, keys []string
}

// loadTrust makes or reads the authority. Nothing is written yet (LIB-3, TLS-7).
func (s *Sandbox) loadTrust() error {
	settings := s.begun.Network.TLSTerminate
	if settings == nil {
		return nil
	}
	t := new(trust)
	var err error
	if settings.CACertPath == "" {
		t.ca, err = mitm.Generate(mitm.GenerateOptions{})
	} else {
		t.ca, err = mitm.Load(settings.CACertPath, settings.CAKeyPath)
		t.given(settings)
	}
	if err != nil {
		return err
	}
	s.trust = t
	return nil
}

// given notes the files of a given authority.
func (t *trust) given(settings *config.TLSTerminate) {
	key, certificate := settingPath(settings.CAKeyPath), settingPath(settings.CACertPath)
	t.keys = []string{key}
	text, err := os.ReadFile(certificate)
	defer clear(text)
	if err != nil || bytes.Contains(text, []byte("PRIVATE KEY-----")) {
		// The bundle has the certificate, and who reads this file would have a key that may be the authority's.
		t.keys = append(t.keys, certificate)
		return
	}
	t.certificates = []string{certificate}
}

// settingPath is the file that a path of the settings means, absolute (TLS-6).
func settingPath(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, path[1:])
		}
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path // it could not be read either
}

// writeTrust writes what commands read to trust the authority (TLS-8, TLS-12).
func (s *Sandbox) writeTrust() error {
	t := s.trust
	if t == nil {
		return nil
	}
	debug := func(line string) { s.opts.logger.Debug(line) }
	settings := s.begun.Network.TLSTerminate
	var err error
	if t.roots, err = mitm.HostRoots(mitm.RootOptions{Extra: settings.ExtraCACertPaths, Debug: debug}); err != nil {
		return err
	}
	t.files, err = mitm.WriteFiles(os.TempDir(), t.ca, t.roots, settings.CACertPath == "")
	return err
}

// termination is what the proxy ends TLS with, nil for none.
func (t *trust) termination() *proxy.Termination {
	if t == nil {
		return nil
	}
	return &proxy.Termination{CA: t.ca, Roots: t.roots.Pool}
}

// close removes the files. It is idempotent.
func (t *trust) close() error {
	if t == nil || t.files == nil {
		return nil
	}
	return t.files.Remove()
}

// shown are the files that every command can read and none can write (TLS-9), absolute.
func (t *trust) shown() []string {
	if t == nil {
		return nil
	}
	list := slices.Clone(t.certificates)
	for _, path := range []string{t.files.Bundle, t.files.CA, t.files.Java} {
		if path != "" {
			list = append(list, path)
		}
	}
	return list
}

// hidden are the files that no command can open (TLS-9), absolute.
func (t *trust) hidden() []string {
	if t == nil {
		return nil
	}
	return t.keys
}

// variables lead programs to the bundle (TLS-14).
func (t *trust) variables() (list []policy.Variable) {
	if t == nil {
		return nil
	}
	for _, v := range t.files.Environment() {
		list = append(list, policy.Variable(v))
	}
	return list
}

// javaOptions lead JVMs to it.
func (t *trust) javaOptions() string {
	if t == nil {
		return ""
	}
	return t.files.JavaOptions()
}

// CA is the certificate authority of a session, as commands are told to trust it (LIB-36). The key can be had from nobody.
type CA struct {
	PEM    []byte // the certificate, one CERTIFICATE block
	Bundle string // absolute path of the certificates to be trusted, PEM: this one, and those that the host trusts
}

// CA is what commands are told to trust for terminated TLS (TLS-11); nil for a session that does not terminate TLS. The bundle
// is gone once the session is closed.
func (s *Sandbox) CA() *CA {
	t := s.trust
	if t == nil {
		return nil
	}
	return &CA{PEM: t.ca.PEM(), Bundle: t.files.Bundle}
}
