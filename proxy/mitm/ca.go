package mitm

import (
	"bytes"
	"container/list"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // key identifiers and thumbprints are SHA-1 by definition (RFC 5280 4.2.1.2); nothing is signed with it
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"sync"
	"time"
)

// The ephemeral authority (TLS-5).
const (
	ephemeralName = "sandbox-runtime ephemeral CA"
	organization  = "sandbox-runtime"
	ephemeralDays = 825
	// backdated is how far before now a certificate begins, for clients whose clock is behind.
	backdated = 24 * time.Hour
	day       = 24 * time.Hour
)

// CA is a certificate authority: its certificate, its private key, which stays inside, and the certificates it has
// issued. The zero value is not usable; [Generate], [Load] and [FromPEM] make one. It is safe for concurrent use.
type CA struct {
	certificate *x509.Certificate
	text        []byte   // the certificate as PEM
	others      [][]byte // DER of the further certificates that came with it: they lead to the root of a given authority
	signer      crypto.Signer
	keyID       []byte // of the authority in the certificates it issues

	leafKey *ecdsa.PrivateKey // one for all leaves (TLS-27)
	server  *tls.Config       // shared by all handshakes, and with it the keys of session tickets

	mu     sync.Mutex
	leaves map[string]*list.Element // of *leaf
	recent *list.List               // most recently used first
}

// GenerateOptions says what an authority is made with. The zero value makes the ephemeral one of a session (TLS-5).
type GenerateOptions struct {
	CommonName string // "": sandbox-runtime ephemeral CA. At most 64 characters (RFC 5280, ub-common-name)
	Days       int    // how long from now it is valid; 0: 825
}

// Generate makes an authority with a new ECDSA P-256 key, valid from a day ago (TLS-5). The key exists in this process's
// memory alone.
func Generate(o GenerateOptions) (*CA, error) {
	if o.CommonName == "" {
		o.CommonName = ephemeralName
	}
	if o.Days == 0 {
		o.Days = ephemeralDays
	}
	if len(o.CommonName) > maxCommonName || o.Days < 0 || o.Days > maxDays {
		return nil, fmt.Errorf("a certificate authority cannot be made: its name may have 1 to %d bytes and it may last 1 to %d days",
			maxCommonName, maxDays)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("a certificate authority cannot be made: %w", err)
	}
	id, err := keyID(key.Public())
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          newSerial(),
		Subject:               pkix.Name{CommonName: o.CommonName, Organization: []string{organization}},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(time.Duration(o.Days) * day),
		BasicConstraintsValid: true,
		IsCA:                  true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		SubjectKeyId:          id,
		SignatureAlgorithm:    x509.ECDSAWithSHA256,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("a certificate authority cannot be made: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("a certificate authority cannot be made: %w", err)
	}
	return newCA(certificate, nil, key)
}

// The bounds of [GenerateOptions].
const (
	maxCommonName = 64
	maxDays       = 36525
)

// newCA makes an authority of a certificate and the key to it.
func newCA(certificate *x509.Certificate, others [][]byte, signer crypto.Signer) (*CA, error) {
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("the key of the certificates that srt issues cannot be made: %w", err)
	}
	id := certificate.SubjectKeyId
	if len(id) == 0 { // strict verifiers want the identifier in a leaf all the same (TLS-26)
		if id, err = keyID(certificate.PublicKey); err != nil {
			return nil, err
		}
	}
	ca := &CA{
		certificate: certificate,
		text:        appendCertificate(nil, certificate.Raw),
		others:      others,
		signer:      signer,
		keyID:       id,
		leafKey:     leafKey,
		leaves:      make(map[string]*list.Element),
		recent:      list.New(),
	}
	ca.server = serverConfig()
	return ca, nil
}

// Certificate returns the authority's certificate. It is shared: the caller does not change it.
func (ca *CA) Certificate() *x509.Certificate { return ca.certificate }

// PEM returns the authority's certificate, and nothing but it, as a PEM block of the caller's own.
func (ca *CA) PEM() []byte { return bytes.Clone(ca.text) }

// newSerial makes a serial number of 16 random bytes whose top bits are 01: positive, and never shorter (TLS-5, RFC 5280
// 4.1.2.2).
func newSerial() *big.Int {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	b[0] = b[0]&0x3f | 0x40
	return new(big.Int).SetBytes(b[:])
}

// keyID is the SHA-1 of a public key's bits (RFC 5280 4.2.1.2, method 1).
func keyID(key crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("the public key of the certificate authority cannot be encoded: %w", err)
	}
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}
	if _, err := asn1.Unmarshal(der, &info); err != nil {
		return nil, fmt.Errorf("the public key of the certificate authority cannot be encoded: %w", err)
	}
	sum := sha1.Sum(info.Key.Bytes) //nolint:gosec // see the import
	return sum[:], nil
}
