package mitm

import (
	"bytes"
	"crypto"
	"crypto/elliptic"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEphemeralCA holds every property of TLS-5.
func TestEphemeralCA(t *testing.T) {
	ca := newTestCA(t)
	c := ca.Certificate()
	if got := c.Subject.String(); got != "CN=sandbox-runtime ephemeral CA,O=sandbox-runtime" {
		t.Errorf("TLS-5: subject %s", got)
	}
	if err := c.CheckSignatureFrom(c); err != nil {
		t.Errorf("TLS-5: not self-signed: %v", err)
	}
	if c.SignatureAlgorithm != x509.ECDSAWithSHA256 || !isECDSA(c.PublicKey) {
		t.Errorf("TLS-5: signature %v", c.SignatureAlgorithm)
	}
	if got, want := c.NotAfter.Sub(c.NotBefore), 826*day; got != want {
		t.Errorf("TLS-5: it lasts %v, want %v", got, want)
	}
	if off := time.Until(c.NotBefore) + day; off > time.Minute || off < -time.Minute {
		t.Errorf("TLS-5: it begins %v, which is not a day ago", c.NotBefore)
	}
	if !c.IsCA || c.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign|x509.KeyUsageDigitalSignature {
		t.Errorf("TLS-5: CA %v, usage %b", c.IsCA, c.KeyUsage)
	}
	critical(t, c, map[string]bool{"2.5.29.19": true, "2.5.29.15": true, "2.5.29.14": false})
	serial := c.SerialNumber.Bytes()
	if len(serial) != 16 || serial[0]&0xc0 != 0x40 {
		t.Errorf("TLS-5: serial %x", serial)
	}
	if newTestCA(t).Certificate().SerialNumber.Cmp(c.SerialNumber) == 0 {
		t.Error("TLS-5: two sessions have the same serial")
	}
	block, rest := pem.Decode(ca.PEM())
	if block == nil || len(rest) != 0 || !bytes.Equal(block.Bytes, c.Raw) {
		t.Error("TLS-11: PEM is not the certificate alone")
	}
}

// critical compares the extensions of a certificate with what is wanted: all of them, and which are critical.
func critical(t *testing.T, c *x509.Certificate, want map[string]bool) {
	t.Helper()
	for _, e := range c.Extensions {
		isCritical, ok := want[e.Id.String()]
		if !ok || isCritical != e.Critical {
			t.Errorf("extension %s: critical %v, unexpected or not as it should be", e.Id, e.Critical)
		}
		delete(want, e.Id.String())
	}
	for id := range want {
		t.Errorf("extension %s is missing", id)
	}
}

func TestGenerateOptions(t *testing.T) {
	ca, err := Generate(GenerateOptions{CommonName: "my CA", Days: 3})
	if err != nil {
		t.Fatal(err)
	}
	if c := ca.Certificate(); c.Subject.CommonName != "my CA" || c.NotAfter.Sub(c.NotBefore) != 4*day {
		t.Errorf("TLS-11: %s, %v", c.Subject, c.NotAfter.Sub(c.NotBefore))
	}
	for _, o := range []GenerateOptions{{CommonName: strings.Repeat("x", 65)}, {Days: -1}, {Days: maxDays + 1}} {
		if _, err := Generate(o); err == nil {
			t.Errorf("TLS-11: %+v was accepted", o)
		}
	}
}

// authorities is one of each kind that TLS-6 allows.
func authorities(t *testing.T) map[string]*CA {
	t.Helper()
	all := map[string]*CA{"ephemeral": newTestCA(t)}
	for name, key := range map[string]crypto.Signer{"RSA": rsaKey(), "P-256": ecKey(t, elliptic.P256()), "P-384": ecKey(t, elliptic.P384())} {
		ca, err := FromPEM(selfSigned(t, caTemplate(), key), pkcs8(t, key))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = ca
	}
	return all
}

// TestLeaf holds every property of TLS-26, for each kind of authority.
func TestLeaf(t *testing.T) {
	long := strings.Repeat("a", 60) + "." + strings.Repeat("b", 60) + ".example"
	for kind, ca := range authorities(t) {
		for _, name := range []string{"api.example.com", "foo_bar.example", "192.0.2.7", "2001:db8::7", long} {
			leaf, err := ca.Leaf(name)
			if err != nil {
				t.Fatalf("%s %s: %v", kind, name, err)
			}
			c := leaf.Leaf
			if len(leaf.Certificate) != 2 || !bytes.Equal(leaf.Certificate[0], c.Raw) || !bytes.Equal(leaf.Certificate[1], ca.certificate.Raw) {
				t.Errorf("TLS-26 %s %s: what is sent is not the leaf and the CA", kind, name)
			}
			if _, err := c.Verify(x509.VerifyOptions{Roots: poolOf(ca), DNSName: name, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
				t.Errorf("TLS-26 %s %s: %v", kind, name, err)
			}
			if len(c.DNSNames)+len(c.IPAddresses) != 1 {
				t.Errorf("TLS-26 %s %s: SAN %v %v", kind, name, c.DNSNames, c.IPAddresses)
			}
			if wantCN := map[bool]string{true: name, false: ""}[len(name) <= 64]; c.Subject.CommonName != wantCN {
				t.Errorf("TLS-26 %s: CN %q", kind, c.Subject.CommonName)
			}
			critical(t, c, map[string]bool{"2.5.29.15": true, "2.5.29.37": false, "2.5.29.19": true, "2.5.29.14": false, "2.5.29.35": false,
				"2.5.29.17": len(name) > 64}) // RFC 5280 4.2.1.6: critical where the subject is empty
			if c.IsCA || c.KeyUsage != x509.KeyUsageDigitalSignature || len(c.SubjectKeyId) == 0 || !bytes.Equal(c.AuthorityKeyId, ca.keyID) {
				t.Errorf("TLS-26 %s: CA %v, usage %b, SKI %x, AKI %x", kind, c.IsCA, c.KeyUsage, c.SubjectKeyId, c.AuthorityKeyId)
			}
			wantEnd := c.NotBefore.Add(99 * day)
			if ca.certificate.NotAfter.Before(wantEnd) {
				wantEnd = ca.certificate.NotAfter
			}
			if !c.NotAfter.Equal(wantEnd) {
				t.Errorf("TLS-26 %s: it ends %v, want %v", kind, c.NotAfter, wantEnd)
			}
			if c.SignatureAlgorithm != x509.ECDSAWithSHA256 && c.SignatureAlgorithm != x509.SHA256WithRSA {
				t.Errorf("TLS-26 %s: %v", kind, c.SignatureAlgorithm)
			}
		}
	}
}

// TestLeafOfCAWithoutKeyID holds that a leaf has an authority key identifier all the same (TLS-26).
func TestLeafOfCAWithoutKeyID(t *testing.T) {
	key := ecKey(t, elliptic.P256())
	text := selfSigned(t, caTemplate(), key)
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	certificate.SubjectKeyId = nil // Go always writes one; older tools do not
	ca, err := newCA(certificate, nil, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.Leaf("a.example")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(leaf.Leaf.AuthorityKeyId, sha1Of(t, certificate)) {
		t.Errorf("TLS-26: AKI %x is not the SHA-1 of the authority's key", leaf.Leaf.AuthorityKeyId)
	}
}

// TestStrictVerifiers asks verifiers that insist on RFC 5280 (TLS-26).
func TestStrictVerifiers(t *testing.T) {
	given := given(t)
	for kind, ca := range map[string]*CA{"ephemeral": newTestCA(t), "RSA, as openssl makes it": given} {
		for _, name := range []string{"api.example.com", "192.0.2.7", "2001:db8::7"} {
			leaf, err := ca.Leaf(name)
			if err != nil {
				t.Fatal(err)
			}
			caPath, leafPath := file(t, "ca.crt", ca.PEM()), file(t, "leaf.crt", appendCertificate(nil, leaf.Leaf.Raw))
			for _, command := range [][]string{
				{"openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", caPath, leafPath},
				{"openssl", "verify", "-x509_strict", "-check_ss_sig", "-CAfile", caPath, caPath},
			} {
				if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
					t.Errorf("TLS-26 %s %s: %v: %s", kind, name, err, out)
				}
			}
		}
	}
}

// given is an authority as a company makes one.
func given(t *testing.T) *CA {
	t.Helper()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	out, err := exec.Command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/O=Corp/CN=Corp Root",
		"-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", key, "-out", cert).CombinedOutput()
	if err != nil {
		t.Fatalf("openssl: %v: %s", err, out)
	}
	ca, err := Load(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// sha1Of is the SHA-1 of a certificate's public key as it stands in the certificate: the last bits of its
// SubjectPublicKeyInfo, which for an uncompressed point of P-256 are 65 bytes.
func sha1Of(t *testing.T, c *x509.Certificate) []byte {
	t.Helper()
	info := c.RawSubjectPublicKeyInfo
	sum := sha1.Sum(info[len(info)-65:])
	return sum[:]
}
