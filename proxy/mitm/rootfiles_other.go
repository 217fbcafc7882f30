//go:build !unix || darwin

package mitm

import "crypto/x509"

// fromEnvironment finds nothing: these variables are not the system's way of saying whom it trusts.
func (s *rootSet) fromEnvironment(func(string) (string, bool)) int { return 0 }

// fromSystem finds nothing: the system's store is asked when a certificate is verified (basePool), and has no files.
func (s *rootSet) fromSystem() int { return 0 }

// basePool is the pool that the certificates of files are added to, and whether it asks the system's store.
func basePool() (pool *x509.CertPool, asksSystem bool) {
	if pool, err := x509.SystemCertPool(); err == nil {
		return pool, true
	}
	return x509.NewCertPool(), false
}
