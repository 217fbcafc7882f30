package hostile

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// Where the web servers are, at every address of the servers' network. Every name that the name server does not know leads
// to the same one of them (zone), so that names alone tell hosts apart.
const (
	securePort = "8443"
	plainPort  = "8080"
)

// arrival is one request as it came to a web server.
type arrival struct {
	conn   int    // which connection of its server, from 1 on
	name   string // the server name of the TLS handshake, or "plain"
	header http.Header
	host   string
	target string
	raw    string // head and body, decrypted
}

// web are the web servers of the world.
type web struct {
	roots string // PEM file of the authority that vouches for them

	ca, stranger *issuer

	mu       sync.Mutex
	conns    int
	arrivals []arrival
	answers  map[string]func(net.Conn, *http.Request) // by the first segment of the path; what is not here is answered "ok"
	names    map[string]int                           // handshakes, by server name
}

// theWeb starts the web servers when a test first asks. They last as long as the process.
var theWeb = sync.OnceValues(makeWeb)

// newWeb gives the world with its web servers, which have forgotten what came before.
func newWeb(t *testing.T) (*world, *web) {
	t.Helper()
	w := newWorld(t)
	s, err := theWeb()
	must(t, err)
	s.take()
	return w, s
}

func makeWeb() (*web, error) {
	w, err := theWorld()
	if err != nil {
		return nil, err
	}
	s := &web{roots: filepath.Join(w.dir, "roots.pem"), answers: maps.Clone(hostileAnswers), names: map[string]int{}}
	for _, issuing := range []**issuer{&s.ca, &s.stranger} {
		if *issuing, err = newIssuer(); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(s.roots, s.ca.pem, 0o644); err != nil {
		return nil, err
	}
	for _, port := range []string{securePort, plainPort} {
		var l net.Listener
		w.in(func() { l, err = net.Listen("tcp", ":"+port) })
		if err != nil {
			return nil, err
		}
		go s.accept(l, port == securePort)
	}
	return s, nil
}

func (s *web) accept(l net.Listener, secure bool) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns++
		number := s.conns
		s.mu.Unlock()
		go func() {
			defer c.Close()
			if !secure {
				s.serve(c, number, "plain")
				return
			}
			// A configuration of its own for each connection: no session is resumed.
			secured := tls.Server(c, &tls.Config{GetCertificate: s.certificate, NextProtos: []string{"http/1.1"}})
			if secured.Handshake() == nil {
				s.serve(secured, number, secured.ConnectionState().ServerName)
			}
		}()
	}
}

// certificate is what a server of a name shows. Some names are of servers that are not what they say.
func (s *web) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := hello.ServerName
	if name == "" {
		name = hello.Conn.LocalAddr().(*net.TCPAddr).IP.String()
	}
	s.mu.Lock()
	s.names[name]++
	times := s.names[name]
	s.mu.Unlock()
	switch {
	case name == "wrongname.srv.test":
		return s.ca.issue("other.test", time.Hour)
	case name == "expired.srv.test":
		return s.ca.issue(name, -time.Minute)
	case name == "stranger.srv.test", strings.HasPrefix(name, "changing") && times > 1:
		return s.stranger.issue(name, time.Hour)
	}
	return s.ca.issue(name, time.Hour)
}

// serve answers requests until one is not understood, or is answered by something that ends the connection.
func (s *web) serve(c net.Conn, number int, name string) {
	var raw bytes.Buffer
	br := bufio.NewReader(io.TeeReader(c, &raw))
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		answer := s.answers[first]
		if first != "slow-upload" {
			_, err = io.Copy(io.Discard, r.Body)
		}
		at := raw.Len() - br.Buffered()
		s.mu.Lock()
		s.arrivals = append(s.arrivals, arrival{number, name, r.Header, r.Host, r.RequestURI, string(raw.Next(at))})
		s.mu.Unlock()
		if err != nil {
			return
		}
		if answer != nil {
			answer(c, r)
			return
		}
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"); err != nil {
			return
		}
	}
}

// take gives the requests that came since it was last called.
func (s *web) take() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.arrivals
	s.arrivals = nil
	return all
}

// trusted lets srt trust the web servers on a stage.
func (s *web) trusted(on *stage.Stage) { on.Env = append(on.Env, "SSL_CERT_FILE="+s.roots) }

// issuer is a certificate authority.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newIssuer() (*issuer, error) {
	i := &issuer{}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hostile servers"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, key, err := i.sign(template, nil)
	if err != nil {
		return nil, err
	}
	i.key, i.pem = key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	i.cert, err = x509.ParseCertificate(der)
	return i, err
}

// sign makes a key and its certificate, signed by the authority or by itself.
func (i *issuer) sign(template, parent *x509.Certificate) ([]byte, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	signer := i.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	return der, key, err
}

// issue makes a certificate for a name or literal that ends so far from now.
func (i *issuer) issue(name string, ends time.Duration) (*tls.Certificate, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(ends), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, key, err := i.sign(template, i.cert)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
