package mitm

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The names in a session's directory (TLS-8).
const (
	dirPrefix  = "srt-ca-"
	bundleName = "trust-bundle.crt"
	caName     = "ca.crt"
	javaName   = "trust-store.p12"
)

// Files is what the commands of a session read to trust its authority, in a directory of the session's own (TLS-8). No
// file in it holds a key. A Files is a plain value once made, and safe for concurrent use but for [Files.Remove].
type Files struct {
	Dir    string // absolute; 0700, with a name that cannot be guessed
	Bundle string // absolute: PEM, the authority and the host's roots (TLS-12)
	CA     string // absolute: PEM, the certificate of an ephemeral authority; "" for a given one, whose file the user has
	Java   string // absolute: the same as Bundle as a PKCS#12 trust store without password, for JVMs
}

// Variable is an environment variable of a command.
type Variable struct{ Name, Value string }

// WriteFiles makes the directory parent/srt-ca-... and the files in it, each new and 0644 (TLS-8, TLS-12). ephemeral says
// that the authority was made for this session. After an error nothing is left. The caller removes the files
// ([Files.Remove]) when the session ends.
func WriteFiles(parent string, ca *CA, roots *Roots, ephemeral bool) (*Files, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, fmt.Errorf("the trust bundle cannot be written: %w", err)
	}
	above, err := os.OpenRoot(parent)
	if err != nil {
		return nil, fmt.Errorf("the trust bundle cannot be written: %w", err)
	}
	defer func() { _ = above.Close() }()
	name := dirPrefix + randomName()
	if err := above.Mkdir(name, 0o700); err != nil {
		return nil, fmt.Errorf("the trust bundle cannot be written to %s: %w", parent, err)
	}
	f := &Files{Dir: filepath.Join(parent, name)}
	if err := f.write(above, name, ca, roots, ephemeral); err != nil {
		_ = above.RemoveAll(name) // the first error is the one to tell
		return nil, fmt.Errorf("the trust bundle cannot be written to %s: %w", f.Dir, err)
	}
	return f, nil
}

// write makes the files below a directory that was just made.
func (f *Files) write(above *os.Root, name string, ca *CA, roots *Roots, ephemeral bool) error {
	dir, err := above.OpenRoot(name)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	trusted := trustedBy(ca, roots)
	put := func(at *string, name string, text []byte) error {
		*at = filepath.Join(f.Dir, name)
		return writeNew(dir, name, text)
	}
	if err := put(&f.Bundle, bundleName, bundleText(trusted)); err != nil {
		return err
	}
	if err := put(&f.Java, javaName, trustStore(trusted)); err != nil {
		return err
	}
	if !ephemeral {
		return nil
	}
	return put(&f.CA, caName, ca.text)
}

// trustedBy is all that a command trusts, as DER: the authority first, each once (TLS-12).
func trustedBy(ca *CA, roots *Roots) [][]byte {
	all := make([][]byte, 0, 1+len(ca.others)+len(roots.list))
	given := make(map[string]bool, 1+len(ca.others)) // these may be among the host's roots, which differ from each other
	for _, der := range append([][]byte{ca.certificate.Raw}, ca.others...) {
		if !given[string(der)] {
			given[string(der)] = true
			all = append(all, der)
		}
	}
	for _, r := range roots.list {
		if !given[string(r.der)] {
			all = append(all, r.der)
		}
	}
	return all
}

// bundleText is certificates as PEM.
func bundleText(ders [][]byte) []byte {
	size := 0
	for _, der := range ders {
		size += len(der)*4/3 + len(der)/48 + 64
	}
	text := make([]byte, 0, size)
	for _, der := range ders {
		text = appendCertificate(text, der)
	}
	return text
}

// writeNew writes a file that must not exist, readable by everyone who gets to it.
func writeNew(dir *os.Root, name string, text []byte) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openNoFollow, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(text); err == nil {
		err = f.Chmod(0o644) // whatever the umask is
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Remove removes the directory and what is in it. A second call does nothing.
func (f *Files) Remove() error {
	if err := os.RemoveAll(f.Dir); err != nil {
		return fmt.Errorf("the directory of the trust bundle cannot be removed: %w", err)
	}
	return nil
}

// trustVariables name the bundle for the programs that read them. Most replace a program's own list by it, which is why
// the host's roots are in it; those of Node and Deno add to it (TLS-14 and the limits of the chapter).
var trustVariables = [...]string{
	"NODE_EXTRA_CA_CERTS",                // Node
	"SSL_CERT_FILE",                      // OpenSSL, Go, Ruby, rustls
	"CURL_CA_BUNDLE",                     // curl
	"REQUESTS_CA_BUNDLE",                 // Python requests
	"PIP_CERT",                           // pip
	"GIT_SSL_CAINFO",                     // git
	"AWS_CA_BUNDLE",                      // AWS CLI and SDKs
	"CARGO_HTTP_CAINFO",                  // cargo
	"DENO_CERT",                          // Deno
	"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", // gcloud
	"NIX_SSL_CERT_FILE",                  // Nix
	"HTTPLIB2_CA_CERTS",                  // Python httplib2
	"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",   // gRPC
	"PERL_LWP_SSL_CA_FILE",               // Perl LWP
	"BUNDLE_SSL_CA_CERT",                 // Ruby bundler
	// npm, which trusts nothing else, NODE_EXTRA_CA_CERTS included, where its own files name a cafile, as they do behind a
	// company's proxy. It reads every spelling, and an inherited one must not win.
	"npm_config_cafile",
	"NPM_CONFIG_CAFILE",
}

// Environment returns the variables that name the bundle to a command (TLS-14). JVMs take options instead: [Files.JavaOptions].
func (f *Files) Environment() []Variable {
	variables := make([]Variable, len(trustVariables))
	for i, name := range trustVariables {
		variables[i] = Variable{name, f.Bundle}
	}
	return variables
}

// JavaOptions returns what goes into JAVA_TOOL_OPTIONS so that a JVM, version 8 or later, trusts the bundle: options
// parted by spaces, quoted as the JVM reads that variable.
func (f *Files) JavaOptions() string {
	return javaOption("-Djavax.net.ssl.trustStore="+f.Java) + " -Djavax.net.ssl.trustStoreType=PKCS12"
}

// javaOption quotes an option that holds spaces or quotes: inside one kind of quotes the other kind stands for itself.
func javaOption(option string) string {
	if !strings.ContainsAny(option, " \t\n\v\f\r'\"") {
		return option
	}
	return `'` + strings.ReplaceAll(option, `'`, `'"'"'`) + `'`
}

// randomName is a name that cannot be guessed.
func randomName() string {
	var b [12]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}
