package mitm

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Certificates for hosts (TLS-26, TLS-27).
const (
	leavesKept = 256
	leafLasts  = 99 * day
	// leafHandedOut is how long a certificate is handed out again, in sessions that last that long: until a day before
	// its end.
	leafHandedOut = leafLasts - backdated - day
	// maxLeafName is the longest name that a certificate is issued for, in bytes.
	maxLeafName = 255
)

// ErrLeafName is the class of a [CA.Leaf] error about the name: no certificate can be issued for it.
var ErrLeafName = errors.New("no certificate can be issued for this name")

// leaf is one certificate of the cache, and the time in which it is handed out. It is made once, by whoever asks first;
// the others wait for it.
type leaf struct {
	name        string
	from, until time.Time
	once        sync.Once
	certificate *tls.Certificate
	err         error
}

// Leaf returns a certificate for a host: a name in lower case, or an address without brackets (TLS-26). What goes to the
// client is the leaf and the authority. All leaves of an authority have the same key; the certificates of the 256 names
// used last are kept, and however many callers ask for a new name at once, it is issued once (TLS-27). The certificate is
// shared: the caller does not change it. Errors match [ErrLeafName], or [ErrCA] once the authority has expired.
func (ca *CA) Leaf(name string) (*tls.Certificate, error) {
	now := time.Now()
	if err := ca.current(now); err != nil {
		return nil, err
	}
	if !leafName(name) {
		return nil, fmt.Errorf("%w: %q", ErrLeafName, name)
	}
	l := ca.cached(name, now)
	l.once.Do(func() { l.certificate, l.err = ca.mint(name, now) })
	return l.certificate, l.err
}

// cached returns the entry of a name, now the most recently used one.
func (ca *CA) cached(name string, now time.Time) *leaf {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	if e := ca.leaves[name]; e != nil {
		if l := e.Value.(*leaf); now.Before(l.until) && !now.Before(l.from) {
			ca.recent.MoveToFront(e)
			return l
		}
		ca.drop(name)
	}
	l := &leaf{name: name, from: now.Add(-backdated), until: now.Add(leafHandedOut)}
	ca.leaves[name] = ca.recent.PushFront(l)
	if ca.recent.Len() > leavesKept {
		ca.drop(ca.recent.Back().Value.(*leaf).name)
	}
	return l
}

// drop forgets a name. ca.mu is held.
func (ca *CA) drop(name string) {
	ca.recent.Remove(ca.leaves[name])
	delete(ca.leaves, name)
}

// leafEnd is when a certificate issued now ends (TLS-26).
func (ca *CA) leafEnd(now time.Time) time.Time {
	end := now.Add(-backdated + leafLasts)
	if ca.certificate.NotAfter.Before(end) {
		return ca.certificate.NotAfter
	}
	return end
}

// current returns an error if the authority's time is over.
func (ca *CA) current(now time.Time) error {
	if now.After(ca.certificate.NotAfter) {
		return &CAError{Reason: reasonExpired}
	}
	return nil
}

// mint issues a certificate for a name.
func (ca *CA) mint(name string, now time.Time) (*tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber:          newSerial(),
		NotBefore:             now.Add(-backdated),
		NotAfter:              ca.leafEnd(now),
		BasicConstraintsValid: true, // CA:FALSE, critical
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		AuthorityKeyId:        ca.keyID,
		SignatureAlgorithm:    signatureAlgorithm(ca.signer.Public()),
	}
	var err error
	if template.SubjectKeyId, err = keyID(ca.leafKey.Public()); err != nil {
		return nil, err
	}
	if len(name) <= maxCommonName {
		template.Subject = pkix.Name{CommonName: name}
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		template.IPAddresses = []net.IP{addr.AsSlice()}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, ca.leafKey.Public(), ca.signer)
	if err != nil {
		return nil, fmt.Errorf("a certificate for %q cannot be issued: %w", name, err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("a certificate for %q cannot be issued: %w", name, err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, ca.certificate.Raw}, PrivateKey: ca.leafKey, Leaf: parsed}, nil
}

// signatureAlgorithm is SHA-256 with the kind of a key (TLS-26).
func signatureAlgorithm(key crypto.PublicKey) x509.SignatureAlgorithm {
	if isECDSA(key) {
		return x509.ECDSAWithSHA256
	}
	return x509.SHA256WithRSA
}

// leafName reports whether a certificate can be issued for a name: an address without zone, or bytes of host names in
// lower case. Underscores count, since the target of a tunnel may have them.
func leafName(name string) bool {
	if name == "" || len(name) > maxLeafName {
		return false
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.Zone() == ""
	}
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}
