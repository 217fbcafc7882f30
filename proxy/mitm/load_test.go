package mitm

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLoad walks the forms of TLS-6.
func TestLoad(t *testing.T) {
	p256, p384 := ecKey(t, elliptic.P256()), ecKey(t, elliptic.P384())
	sec1 := func(key *ecdsa.PrivateKey) []byte {
		der, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	}
	pkcs1 := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey())})
	parameters := pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte("\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07")})
	for name, row := range map[string]struct {
		key  crypto.Signer
		text []byte
	}{
		"RSA, PKCS 8":           {rsaKey(), pkcs8(t, rsaKey())},
		"RSA, PKCS 1":           {rsaKey(), pkcs1},
		"P-256, PKCS 8":         {p256, pkcs8(t, p256)},
		"P-256, SEC 1":          {p256, sec1(p256)},
		"P-384, PKCS 8":         {p384, pkcs8(t, p384)},
		"P-384, SEC 1":          {p384, sec1(p384)},
		"parameters before it":  {p256, append(parameters, sec1(p256)...)},
		"text before and after": {p256, []byte("Bag Attributes\n  x: y\n" + string(pkcs8(t, p256)) + "\nmore\n")},
		"lines end in CR LF":    {p256, bytes.ReplaceAll(pkcs8(t, p256), []byte("\n"), []byte("\r\n"))},
	} {
		cert := selfSigned(t, caTemplate(), row.key)
		ca, err := Load(file(t, "ca.crt", cert), file(t, "ca.key", row.text))
		if err != nil {
			t.Errorf("TLS-6 %s: %v", name, err)
			continue
		}
		if _, err := ca.Leaf("a.example"); err != nil {
			t.Errorf("TLS-6 %s: %v", name, err)
		}
		if _, err := FromPEM(append(cert, row.text...), append(cert, row.text...)); err != nil {
			t.Errorf("PRX-10 %s: %v", name, err)
		}
	}
}

// TestLoadRefuses walks the reasons of TLS-7, word for word.
func TestLoadRefuses(t *testing.T) {
	key, other := ecKey(t, elliptic.P256()), ecKey(t, elliptic.P256())
	good, goodKey := selfSigned(t, caTemplate(), key), pkcs8(t, key)
	changed := func(signer crypto.Signer, change func(*x509.Certificate)) []byte {
		template := caTemplate()
		change(template)
		return selfSigned(t, template, signer)
	}
	same := func(*x509.Certificate) {}
	p521, short := ecKey(t, elliptic.P521()), rsaOf(t, 1024)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	future := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	locked := []byte("-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n")
	rows := map[string]struct {
		cert, key []byte // nil: there is no such file
		want      string // $CERT and $KEY stand for the paths
	}{
		"no certificate file": {nil, goodKey, "tlsTerminate.caCertPath: cannot read $CERT (ENOENT)"},
		"no key file":         {good, nil, "tlsTerminate.caKeyPath: cannot read $KEY (ENOENT)"},
		"not PEM":             {[]byte("hello"), goodKey, "tlsTerminate.caCertPath: $CERT is not a PEM CERTIFICATE"},
		"a key for a certificate": {goodKey, goodKey,
			"tlsTerminate.caCertPath: $CERT is not a PEM CERTIFICATE"},
		"a certificate for a key": {good, good, "tlsTerminate.caKeyPath: $KEY is not a PEM PRIVATE KEY"},
		"an empty key file":       {good, []byte{}, "tlsTerminate.caKeyPath: $KEY is not a PEM PRIVATE KEY"},
		"an encrypted key": {good, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}),
			"tlsTerminate.caKeyPath: $KEY is not a PEM PRIVATE KEY (it is encrypted, and srt asks for no passphrase)"},
		"a key encrypted as of old": {good, locked, "tlsTerminate: CA at $CERT: parse: the private key is encrypted, and srt asks for no passphrase"},
		"a malformed certificate": {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), goodKey,
			"tlsTerminate: CA at $CERT: parse: x509: malformed certificate"},
		"a malformed key": {good, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}),
			"tlsTerminate: CA at $CERT: parse: the private key is malformed"},
		"P-521":          {changed(p521, same), pkcs8(t, p521), "tlsTerminate: CA at $CERT: key type not supported"},
		"Ed25519":        {changed(edwards, same), pkcs8(t, edwards), "tlsTerminate: CA at $CERT: key type not supported"},
		"RSA, 1024":      {changed(short, same), pkcs8(t, short), "tlsTerminate: CA at $CERT: key type not supported"},
		"an Ed25519 key": {good, pkcs8(t, edwards), "tlsTerminate: CA at $CERT: key type not supported"},
		"not begun": {changed(key, func(c *x509.Certificate) { c.NotBefore = future }), goodKey,
			"tlsTerminate: CA at $CERT: notBefore " + future.Format(time.RFC3339) + " is in the future (clock skew?)"},
		"another's key":           {good, pkcs8(t, other), "tlsTerminate: CA at $CERT: key does not match certificate public key"},
		"another kind of key":     {good, pkcs8(t, rsaKey()), "tlsTerminate: CA at $CERT: key does not match certificate public key"},
		"expired":                 {changed(key, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), goodKey, "tlsTerminate: CA at $CERT: certificate has expired"},
		"not an authority":        {changed(key, func(c *x509.Certificate) { c.IsCA = false }), goodKey, "tlsTerminate: CA at $CERT: certificate is not a CA"},
		"no basic constraints":    {changed(key, func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = false, false }), goodKey, "tlsTerminate: CA at $CERT: certificate is not a CA"},
		"may not sign":            {changed(key, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature }), goodKey, "tlsTerminate: CA at $CERT: certificate is not a CA"},
		"too large to be a key":   {good, bytes.Repeat([]byte("x"), maxCAFile+1), "tlsTerminate.caKeyPath: cannot read $KEY (too large)"},
		"the first key of two":    {good, append(pkcs8(t, other), goodKey...), "tlsTerminate: CA at $CERT: key does not match certificate public key"},
		"the first of two, wrong": {append(changed(other, same), good...), goodKey, "tlsTerminate: CA at $CERT: key does not match certificate public key"},
	}
	for name, row := range rows {
		dir := t.TempDir()
		paths := [2]string{filepath.Join(dir, "c.crt"), filepath.Join(dir, "c.key")}
		for i, text := range [][]byte{row.cert, row.key} {
			if text != nil {
				if err := os.WriteFile(paths[i], text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := strings.NewReplacer("$CERT", paths[0], "$KEY", paths[1]).Replace(row.want)
		_, err := Load(paths[0], paths[1])
		var typed *CAError
		if err == nil || err.Error() != want || !errors.Is(err, ErrCA) || !errors.As(err, &typed) {
			t.Errorf("TLS-7 %s:\n got %v\nwant %s", name, err, want)
		}
		if _, again := Validate(paths[0], paths[1]); again == nil || again.Error() != want {
			t.Errorf("TLS-11 %s: Validate says %v", name, again)
		}
		if row.cert != nil && row.key != nil && len(row.key) <= maxCAFile {
			if _, err := FromPEM(row.cert, row.key); !errors.Is(err, ErrCA) || strings.Contains(err.Error(), dir) {
				t.Errorf("PRX-10 %s: %v", name, err)
			}
		}
	}
}

func rsaOf(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestLoadPaths holds that "~" and relative paths mean what a person means (TLS-6).
func TestLoadPaths(t *testing.T) {
	dir := t.TempDir()
	key := ecKey(t, elliptic.P256())
	for name, text := range map[string][]byte{"ca.crt": selfSigned(t, caTemplate(), key), "ca.key": pkcs8(t, key)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", dir)
	t.Chdir(dir)
	for _, prefix := range []string{"~/", "", "./", dir + "/"} {
		if _, err := Load(prefix+"ca.crt", prefix+"ca.key"); err != nil {
			t.Errorf("TLS-6 %q: %v", prefix, err)
		}
	}
	if _, err := Load("~nobody/ca.crt", "ca.key"); err == nil || !strings.Contains(err.Error(), dir+"/~nobody/ca.crt") {
		t.Errorf("TLS-6: %v", err)
	}
}

func TestValidate(t *testing.T) {
	key := ecKey(t, elliptic.P256())
	text := selfSigned(t, caTemplate(), key)
	cert := file(t, "ca.crt", text)
	info, err := Validate(cert, file(t, "ca.key", pkcs8(t, key)))
	if err != nil {
		t.Fatal(err)
	}
	out := run(t, "openssl", "x509", "-in", cert, "-noout", "-fingerprint", "-sha1")
	_, want, _ := strings.Cut(strings.TrimSpace(out), "=")
	if info.Thumbprint != strings.ReplaceAll(want, ":", "") {
		t.Errorf("TLS-11: thumbprint %s, openssl says %s", info.Thumbprint, want)
	}
	if off := time.Until(info.NotAfter) - 1000*time.Hour; off > time.Minute || off < -time.Minute {
		t.Errorf("TLS-11: notAfter %v", info.NotAfter)
	}
}

// TestErrorsHoldNoKey plants a marker in malformed keys of every form and looks for it, plain, in hexadecimal and in base64,
// in what is said about them (TLS-7, CRED-35).
func TestErrorsHoldNoKey(t *testing.T) {
	const marker = "c0ffee-planted-key-material-c0ffee"
	key := ecKey(t, elliptic.P256())
	cert := selfSigned(t, caTemplate(), key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	bodies := [][]byte{[]byte(marker), append(bytes.Clone(der), marker...), append([]byte{0x30, byte(len(marker))}, marker...),
		append([]byte{0x30, byte(len(marker) + 5), 2, 1, 0, 4, byte(len(marker))}, marker...), append([]byte{4, byte(len(marker))}, marker...)}
	for _, blockType := range []string{"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "CERTIFICATE", marker} {
		for _, body := range bodies {
			text := pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: body, Headers: map[string]string{"X": marker}})
			raw := []byte("-----BEGIN " + blockType + "-----\n" + marker + "\n-----END " + blockType + "-----\n" + marker)
			for _, keyText := range [][]byte{text, raw} {
				for _, certText := range [][]byte{cert, keyText} {
					_, fromFile := Load(file(t, "c", certText), file(t, "k", keyText))
					_, fromText := FromPEM(certText, keyText)
					for _, err := range []error{fromFile, fromText} {
						if err == nil {
							continue // a key with bytes after it, which is one
						}
						encoded := base64.StdEncoding.EncodeToString([]byte(marker))
						if found := containsAny([]byte(err.Error()), marker, marker[:8], encoded[:12], "63306666"); found != "" {
							t.Errorf("TLS-7: %s is in %q", found, err)
						}
					}
				}
			}
		}
	}
}
