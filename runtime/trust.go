package runtime

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/proxy/mitm"
	"github.com/srt-sandbox/srt/runtime/config"
)

// trust is what a session ends TLS with, and what it tells its commands to trust (TLS-5 to TLS-14). It is fixed for the life
// of the session (TLS-2, LIB-23). A nil one is that of a session that ends no TLS, and costs nothing (TLS-1).
type trust struct {
	ca *mitm.CA
	// Of a given authority, absolute: the files with its certificate and with its key. What holds a key is with the keys.
	certificates, keys []string
	// written waits for what is written in the background from the start of the session on, and gives it: reading what the host
	// trusts takes longer than all else that a start does, and nothing needs it before the first command.
	written func() (trusted, error)
	// sweep ends what removes the files of sessions that were killed, which begins behind that and keeps nobody waiting.
	sweep func()
}

// trusted is what a session has written.
type trusted struct {
	roots *mitm.Roots
	files *mitm.Files
	lock  *os.File // on their directory; nil where there is none
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

// writeTrust begins to write what commands read to trust the authority (TLS-8, TLS-12).
func (s *Sandbox) writeTrust() {
	t, settings, log, warn := s.trust, s.begun.Network.TLSTerminate, s.opts.logger, s.opts.warn
	if t == nil {
		return
	}
	t.written = sync.OnceValues(func() (w trusted, err error) {
		debug := func(line string) { log.Debug(line) }
		if w.roots, err = mitm.HostRoots(mitm.RootOptions{Extra: settings.ExtraCACertPaths, Debug: debug, Warn: warn}); err == nil {
			w.files, err = mitm.WriteFiles(os.TempDir(), t.ca, w.roots, settings.CACertPath == "")
		}
		if err == nil {
			w.lock = lockTrust(w.files.Dir)
		}
		return w, err
	})
	stop, swept := make(chan struct{}), make(chan struct{})
	t.sweep = sync.OnceFunc(func() { close(stop); <-swept })
	go func() {
		defer close(swept)
		if _, err := t.written(); err == nil { // if not, whoever needs it gets the error
			sweepTrust(os.TempDir(), stop)
		}
	}()
}

// upstream is what servers are verified against (TLS-36). Where it is not known nothing is trusted.
func (t *trust) upstream() *x509.CertPool {
	w, _ := t.written() // the launch has failed with the error
	if w.roots == nil {
		return x509.NewCertPool()
	}
	return w.roots.Pool()
}

// termination is what the proxy ends TLS with, nil for none.
func (t *trust) termination() *proxy.Termination {
	if t == nil {
		return nil
	}
	return &proxy.Termination{CA: t.ca, Roots: t.upstream}
}

// close removes the files. It is idempotent.
func (t *trust) close() error {
	if t == nil || t.written == nil {
		return nil
	}
	w, err := t.written()
	t.sweep()
	if err != nil {
		return nil // which has left nothing
	}
	err = w.files.Remove()
	if w.lock != nil {
		w.lock.Close() // it was open to be locked: nothing was written to it
	}
	return err
}

// CA is the certificate authority of a session, as commands are told to trust it (LIB-36). The key can be had from nobody.
type CA struct {
	PEM    []byte // the certificate, one CERTIFICATE block
	Bundle string // absolute path of the certificates to be trusted, PEM: this one, and those that the host trusts
}

// CA is what commands are told to trust for terminated TLS (TLS-11); nil for a session that does not terminate TLS, or could not
// write it, with which no command can be launched either. The bundle is gone once the session is closed.
func (s *Sandbox) CA() *CA {
	t := s.trust
	if t == nil {
		return nil
	}
	w, err := t.written()
	if err != nil {
		return nil
	}
	return &CA{PEM: t.ca.PEM(), Bundle: w.files.Bundle}
}
