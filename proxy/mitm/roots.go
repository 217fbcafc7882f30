package mitm

import (
	"crypto/sha256"
	"crypto/x509"
	"os"
	"sync"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// maxRootFile bounds one file of trusted authorities, in bytes.
const maxRootFile = 16 << 20

// RootOptions says where the authorities that are trusted come from. The zero value means this process's environment and
// no files of its own.
type RootOptions struct {
	LookupEnv func(string) (string, bool) // nil: os.LookupEnv
	Extra     []string                    // network.tlsTerminate.extraCaCertPaths: "~/" is the home directory, else below the working directory
	Debug     func(string)                // told of each file of the environment or the system that is left out, and why; nil: nobody
	Warn      func(string)                // told of each file of Extra that is left out, and why; nil: Debug
}

// Roots is the authorities that the host trusts (TLS-12, TLS-13). It does not change once made, and is safe for concurrent
// use.
type Roots struct {
	list []root
	pool func() *x509.CertPool
}

// root is one trusted certificate, as DER.
type root struct {
	der        []byte
	constraint func([]*x509.Certificate) error // what a certificate cannot say itself; nil: nothing
	builtIn    bool                            // it comes with srt, for want of the host's own
}

// rootSet gathers certificates, each once.
type rootSet struct {
	list  []root
	seen  map[[sha256.Size]byte]bool
	files map[string]int // how many certificates the files read so far have; often several settings name one file
	note  func(string)   // told of what is left out
}

func newRootSet(debug func(string)) *rootSet {
	return &rootSet{seen: make(map[[sha256.Size]byte]bool), files: make(map[string]int), note: debug}
}

// add takes certificates that are not there yet, and returns how many it was given.
func (s *rootSet) add(ders [][]byte) int {
	for _, der := range ders {
		s.addRoot(root{der: der})
	}
	return len(ders)
}

func (s *rootSet) addRoot(r root) {
	sum := sha256.Sum256(r.der)
	if !s.seen[sum] {
		s.seen[sum] = true
		s.list = append(s.list, r)
	}
}

// addFile takes the certificates of a file and returns how many there are. One that cannot be read, or has none, is left
// out with a note (TLS-12). The note names the file and never what it holds.
func (s *rootSet) addFile(path, origin string) int {
	if n, ok := s.files[path]; ok {
		return n
	}
	text, err := readFile(path, maxRootFile)
	if err != nil {
		s.note(origin + ": cannot read " + path + " (" + errnoName(err) + "); it is left out")
		return 0
	}
	n := s.add(certificateBlocks(text))
	clear(text) // it may hold a key beside the certificates
	s.files[path] = n
	if n == 0 {
		s.note(origin + ": " + path + " has no PEM CERTIFICATE block; it is left out")
	}
	return n
}

// HostRoots reads the authorities that the host trusts: its usual ones (TLS-13), then those of the file that
// NODE_EXTRA_CA_CERTS names, then those of Extra, in order. A file that cannot be read, or has no certificate, is left out.
// Only certificates are kept of any file.
func HostRoots(o RootOptions) (*Roots, error) {
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.Debug == nil {
		o.Debug = func(string) {}
	}
	if o.Warn == nil {
		o.Warn = o.Debug
	}
	s := newRootSet(o.Debug)
	s.usual(o.LookupEnv)
	if path, ok := o.LookupEnv("NODE_EXTRA_CA_CERTS"); ok && path != "" {
		s.addFile(absolute(path), "NODE_EXTRA_CA_CERTS")
	}
	s.note = o.Warn // who names a file in the settings wants it trusted; without a word, servers just fail
	for _, path := range o.Extra {
		s.addFile(absolute(path), "network.tlsTerminate.extraCaCertPaths")
	}
	r := &Roots{list: s.list}
	r.pool = sync.OnceValue(r.makePool)
	return r, nil
}

// usual takes the host's usual authorities: the files that SSL_CERT_FILE and SSL_CERT_DIR name, else the system's, else
// Mozilla's set of the day srt was built (TLS-13).
func (s *rootSet) usual(lookup func(string) (string, bool)) {
	if s.fromEnvironment(lookup) > 0 || s.fromSystem() > 0 {
		return
	}
	s.note("no file of trusted certificates was found on this host; Mozilla's, as of this build of srt, are used")
	s.builtIn()
}

// builtIn takes Mozilla's set.
func (s *rootSet) builtIn() {
	for r := range bundle.Roots() {
		s.addRoot(root{der: r.Certificate, constraint: r.Constraint, builtIn: true})
	}
}

// makePool parses what the upstream legs are verified against. A certificate that this program cannot parse is left out:
// some hosts trust ones with forms that Go refuses.
func (r *Roots) makePool() *x509.CertPool {
	pool, asksSystem := basePool()
	for _, r := range r.list {
		if r.builtIn && asksSystem {
			continue
		}
		certificate, err := x509.ParseCertificate(r.der)
		switch {
		case err != nil:
		case r.constraint != nil:
			pool.AddCertWithConstraint(certificate, r.constraint)
		default:
			pool.AddCert(certificate)
		}
	}
	return pool
}

// Pool returns what the certificates of upstream servers are verified against (TLS-36). The first call parses it, which
// takes a few milliseconds, and later calls return the same pool. It is shared: the caller does not change it.
func (r *Roots) Pool() *x509.CertPool { return r.pool() }
