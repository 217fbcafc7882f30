package mitm

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // a thumbprint is SHA-1 by definition (TLS-11)
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrCA is the class of every error about a given certificate authority: it cannot be used, and nothing was started.
var ErrCA = errors.New("the certificate authority cannot be used")

// CAError says why a given certificate authority cannot be used (TLS-7). It matches [ErrCA] with errors.Is, and for a file
// that cannot be read also the error of reading it. It never holds anything of a key.
type CAError struct {
	Field  string // the setting below network.tlsTerminate whose file is at fault: "caCertPath", "caKeyPath", or "" for the pair
	Path   string // the absolute path of that file, or of the certificate; "" if the authority came as text
	Reason string // one clause

	cause error
}

// Error returns one line in the words of TLS-7.
func (e *CAError) Error() string {
	switch {
	case e.Field != "":
		return "tlsTerminate." + e.Field + ": " + e.Reason
	case e.Path != "":
		return "tlsTerminate: CA at " + e.Path + ": " + e.Reason
	}
	return "certificate authority: " + e.Reason
}

// Unwrap returns [ErrCA] and, if there is one, the error of reading the file.
func (e *CAError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrCA}
	}
	return []error{ErrCA, e.cause}
}

// The reasons of TLS-7 that hold nothing of their own.
const (
	reasonKeyType  = "key type not supported"
	reasonMismatch = "key does not match certificate public key"
	reasonExpired  = "certificate has expired"
	reasonNotCA    = "certificate is not a CA"
	// What the parser of a key says is not repeated: it has seen the key.
	reasonKeyParse = "parse: the private key is malformed"
	reasonKeyLock  = "parse: the private key is encrypted, and srt asks for no passphrase"
)

// minRSABits is the shortest RSA key of an authority (TLS-6).
const minRSABits = 2048

// maxCAFile bounds a file with a certificate or a key, in bytes.
const maxCAFile = 1 << 20

// Info is what may be known of an authority without its key (TLS-11).
type Info struct {
	Thumbprint string    // SHA-1 of the certificate, in upper-case hexadecimal digits
	NotAfter   time.Time // when the certificate ends
}

// Load reads a given authority: a PEM certificate and its unencrypted PEM key, RSA of at least 2048 bits or ECDSA on P-256
// or P-384 (TLS-6). A path that starts with "~/" is below the home directory of the process, a relative one below its
// working directory. Every error is a *[CAError] (TLS-7).
func Load(certPath, keyPath string) (*CA, error) {
	certPath, keyPath = absolute(certPath), absolute(keyPath)
	certText, err := readCAFile("caCertPath", certPath)
	if err != nil {
		return nil, err
	}
	keyText, err := readCAFile("caKeyPath", keyPath)
	if err != nil {
		return nil, err
	}
	defer clear(keyText)
	if len(certificateBlocks(certText)) == 0 {
		return nil, &CAError{Field: "caCertPath", Path: certPath, Reason: certPath + " is not a PEM CERTIFICATE"}
	}
	if !hasBlock(keyText, isKey) {
		reason := keyPath + " is not a PEM PRIVATE KEY"
		if hasBlock(keyText, func(t string) bool { return t == "ENCRYPTED PRIVATE KEY" }) {
			reason += " (it is encrypted, and srt asks for no passphrase)"
		}
		return nil, &CAError{Field: "caKeyPath", Path: keyPath, Reason: reason}
	}
	return fromPEM(certPath, certText, keyText)
}

// FromPEM makes an authority of texts in memory: the first certificate of one and the first key of the other, which may be
// the same text (TLS-11, PRX-10). The texts are not kept. Every error is a *[CAError] without a path.
func FromPEM(cert, key []byte) (*CA, error) {
	switch {
	case len(certificateBlocks(cert)) == 0:
		return nil, &CAError{Reason: "there is no PEM CERTIFICATE block"}
	case !hasBlock(key, isKey):
		return nil, &CAError{Reason: "there is no PEM PRIVATE KEY block"}
	}
	return fromPEM("", cert, key)
}

// Validate reads an authority as [Load] does and says what it is, or why it cannot be used (TLS-11).
func Validate(certPath, keyPath string) (Info, error) {
	ca, err := Load(certPath, keyPath)
	if err != nil {
		return Info{}, err
	}
	sum := sha1.Sum(ca.certificate.Raw) //nolint:gosec // see the import
	return Info{Thumbprint: strings.ToUpper(hex.EncodeToString(sum[:])), NotAfter: ca.certificate.NotAfter}, nil
}

// fromPEM joins a certificate and a key, each present, and judges the pair (TLS-7).
func fromPEM(path string, certText, keyText []byte) (*CA, error) {
	refuse := func(reason string) error { return &CAError{Path: path, Reason: reason} }
	blocks := certificateBlocks(certText)
	certificate, err := x509.ParseCertificate(blocks[0])
	if err != nil {
		return nil, refuse("parse: " + err.Error())
	}
	if !supported(certificate.PublicKey) {
		return nil, refuse(reasonKeyType)
	}
	signer, reason := parseKey(keyText)
	if reason != "" {
		return nil, refuse(reason)
	}
	if reason := unusable(certificate, signer, time.Now()); reason != "" {
		return nil, refuse(reason)
	}
	return newCA(certificate, blocks[1:], signer)
}

// unusable says what is wrong with a certificate and a key, each fine in itself, or "".
func unusable(certificate *x509.Certificate, signer crypto.Signer, now time.Time) string {
	public, ok := certificate.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	switch {
	case certificate.NotBefore.After(now):
		return fmt.Sprintf("notBefore %s is in the future (clock skew?)", certificate.NotBefore.UTC().Format(time.RFC3339))
	case !ok || !public.Equal(signer.Public()):
		return reasonMismatch
	case now.After(certificate.NotAfter):
		return reasonExpired
	case !certificate.BasicConstraintsValid || !certificate.IsCA,
		certificate.KeyUsage != 0 && certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return reasonNotCA
	}
	return ""
}

// keyParsers is how the key in a PEM block is read, by the type of the block (RFC 7468 section 10, RFC 8017, RFC 5915).
var keyParsers = [...]struct {
	block string
	parse func([]byte) (any, error)
}{
	{"PRIVATE KEY", x509.ParsePKCS8PrivateKey},
	{"RSA PRIVATE KEY", func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) }},
	{"EC PRIVATE KEY", func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) }},
}

// parseKey reads the first key of a text, or says why it cannot be used.
func parseKey(text []byte) (crypto.Signer, string) {
	block := findBlock(text, isKey)
	defer clear(block.Bytes)
	if strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") { // RFC 1421, as openssl writes it
		return nil, reasonKeyLock
	}
	for _, p := range keyParsers {
		if p.block != block.Type {
			continue
		}
		key, err := p.parse(block.Bytes)
		if err != nil {
			return nil, reasonKeyParse
		}
		signer, ok := key.(crypto.Signer)
		if !ok || !supported(signer.Public()) {
			return nil, reasonKeyType
		}
		return signer, ""
	}
	return nil, reasonKeyType
}

// supported reports whether an authority may have a key of this kind (TLS-6).
func supported(key crypto.PublicKey) bool {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= minRSABits
	case *ecdsa.PublicKey:
		return key.Curve == elliptic.P256() || key.Curve == elliptic.P384()
	}
	return false
}

func isECDSA(key crypto.PublicKey) bool {
	_, ok := key.(*ecdsa.PublicKey)
	return ok
}

func isKey(blockType string) bool {
	for _, p := range keyParsers {
		if p.block == blockType {
			return true
		}
	}
	return false
}

// findBlock returns the first PEM block whose type is one of those meant, or nil.
func findBlock(text []byte, meant func(blockType string) bool) *pem.Block {
	for {
		block, rest := pem.Decode(text)
		if block == nil || meant(block.Type) {
			return block
		}
		clear(block.Bytes)
		text = rest
	}
}

func hasBlock(text []byte, meant func(blockType string) bool) bool {
	block := findBlock(text, meant)
	if block != nil {
		clear(block.Bytes)
	}
	return block != nil
}

// readCAFile reads the file of a setting.
func readCAFile(field, path string) ([]byte, error) {
	text, err := readFile(path, maxCAFile)
	if err != nil {
		return nil, &CAError{Field: field, Path: path, Reason: "cannot read " + path + " (" + errnoName(err) + ")", cause: err}
	}
	return text, nil
}

// absolute is the file that a path of the settings means (TLS-6).
func absolute(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, path[1:])
		}
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
