//go:build unix && !darwin

package mitm

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
)

// Where distributions keep the certificates that programs trust. The first file that has any counts: they are the same set
// in different forms.
var (
	systemFiles = [...]string{
		"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Gentoo, Arch, NixOS
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
		"/etc/pki/tls/certs/ca-bundle.crt",                  // older Fedora, RHEL
		"/etc/ssl/ca-bundle.pem",                            // SUSE
		"/etc/ssl/cert.pem",                                 // Alpine, the BSDs
		"/usr/local/share/certs/ca-root-nss.crt",            // FreeBSD
	}
	systemDirs = [...]string{"/etc/ssl/certs", "/etc/pki/tls/certs"}
)

// maxDirFiles bounds how many files of one directory of certificates are read.
const maxDirFiles = 2048

// fromEnvironment takes the certificates of the files that SSL_CERT_FILE and SSL_CERT_DIR name (OpenSSL's variables, the
// second one a list), and returns how many there are.
func (s *rootSet) fromEnvironment(lookup func(string) (string, bool)) int {
	n := 0
	if path, ok := lookup("SSL_CERT_FILE"); ok && path != "" {
		n += s.addFile(absolute(path), "SSL_CERT_FILE")
	}
	if dirs, ok := lookup("SSL_CERT_DIR"); ok {
		for _, dir := range filepath.SplitList(dirs) {
			if dir != "" {
				n += s.addDir(absolute(dir), "SSL_CERT_DIR")
			}
		}
	}
	return n
}

// fromSystem takes the certificates of the system's files and returns how many there are. The directories count only where
// no file has any: with one, they hold what it was made of, and also certificates of servers, which nobody meant to trust.
func (s *rootSet) fromSystem() int {
	for _, path := range systemFiles {
		if _, err := os.Stat(path); err != nil {
			continue // most hosts have one of them
		}
		if n := s.addFile(path, "the system's certificates"); n > 0 {
			return n
		}
	}
	n := 0
	for _, dir := range systemDirs {
		n += s.addDir(dir, "the system's certificates")
	}
	return n
}

// addDir takes the certificates of the files in a directory. What has no certificate is passed over without a note: such
// directories hold other things too.
func (s *rootSet) addDir(dir, origin string) int {
	entries, err := os.ReadDir(dir)
	if err != nil {
		s.note(origin + ": cannot read " + dir + " (" + errnoName(err) + "); it is left out")
		return 0
	}
	n, read := 0, 0
	for _, entry := range entries {
		if entry.IsDir() || entry.Type()&os.ModeSymlink != 0 && linkWithin(dir, entry.Name()) {
			continue
		}
		if read++; read > maxDirFiles {
			s.note(origin + ": " + dir + " has more files than are read; the rest is left out")
			break
		}
		text, err := readFile(filepath.Join(dir, entry.Name()), maxRootFile)
		if err == nil {
			n += s.add(certificateBlocks(text))
			clear(text)
		}
	}
	return n
}

// linkWithin reports whether a link leads to another name in the same directory, which is read by that name: directories
// that OpenSSL searches have one such link, a hash, for each certificate.
func linkWithin(dir, name string) bool {
	target, err := os.Readlink(filepath.Join(dir, name))
	return err == nil && !strings.Contains(target, "/")
}

// basePool is the pool that the certificates of files are added to, and whether it asks the system's store: here the files
// are that store.
func basePool() (pool *x509.CertPool, asksSystem bool) { return x509.NewCertPool(), false }
