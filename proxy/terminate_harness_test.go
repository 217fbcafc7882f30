package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/srt-sandbox/srt/proxy/credential"
	"github.com/srt-sandbox/srt/proxy/mitm"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// authorities are made once: the one of the session, and the one that signs for the servers behind it.
var authorities = sync.OnceValues(func() (ours, theirs *mitm.CA) {
	var err error
	if ours, err = mitm.Generate(mitm.GenerateOptions{}); err != nil {
		panic(err)
	}
	if theirs, err = mitm.Generate(mitm.GenerateOptions{CommonName: "the authority of the servers"}); err != nil {
		panic(err)
	}
	return ours, theirs
})

func poolOf(ca *mitm.CA) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.Certificate())
	return pool
}

// origin is a TLS server behind the proxy. Every request it got is kept as it came.
type origin struct {
	t    testing.TB
	port int

	mu       sync.Mutex
	requests []string // raw
	conns    int      // accepted
	shook    int      // handshakes
	answer   func(r *http.Request, body string) string
}

const plainOK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// serveOrigin runs a server that shows a certificate for name. answer makes whole responses; nil: always plainOK. An empty
// response closes the connection.
func serveOrigin(t testing.TB, name string, answer func(r *http.Request, body string) string) *origin {
	t.Helper()
	_, theirs := authorities()
	leaf, err := theirs.Leaf(name)
	if err != nil {
		t.Fatal(err)
	}
	return serveOriginAs(t, &tls.Config{Certificates: []tls.Certificate{*leaf}, NextProtos: []string{"http/1.1"}}, answer)
}

func serveOriginAs(t testing.TB, conf *tls.Config, answer func(r *http.Request, body string) string) *origin {
	t.Helper()
	o := &origin{t: t, answer: answer}
	o.port = serveEach(t, func(c *net.TCPConn) {
		o.mu.Lock()
		o.conns++
		o.mu.Unlock()
		secured := tls.Server(c, conf)
		if secured.Handshake() != nil {
			return
		}
		o.mu.Lock()
		o.shook++
		o.mu.Unlock()
		o.serve(secured)
		_ = secured.CloseWrite()
	}).Port
	return o
}

func (o *origin) serve(c net.Conn) {
	var raw bytes.Buffer
	br := bufio.NewReader(io.TeeReader(c, &raw))
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		seen := raw.Len() - br.Buffered()
		o.mu.Lock()
		o.requests = append(o.requests, string(raw.Next(seen)))
		o.mu.Unlock()
		if err != nil {
			return
		}
		response := plainOK
		if o.answer != nil {
			response = o.answer(req, string(body))
		}
		if _, err := io.WriteString(c, response); err != nil || response == "" || strings.Contains(response, "Connection: close") {
			return
		}
	}
}

func (o *origin) got() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.requests...)
}

func (o *origin) count() (conns, handshakes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.conns, o.shook
}

// untouched fails if the server got any request.
func (o *origin) untouched() {
	o.t.Helper()
	if got := o.got(); len(got) != 0 {
		o.t.Errorf("the server got %q", got)
	}
}

// inspecting is a harness that terminates TLS, in front of a server for name.test.
type inspecting struct {
	*harness
	origin *origin
	target string // of CONNECT

	clients []*secured // that shook hands

	rulesMu sync.Mutex
	rules   *Rules
}

// update replaces the rules by what change makes of a copy.
func (h *inspecting) update(change func(*Rules)) {
	h.rulesMu.Lock()
	defer h.rulesMu.Unlock()
	next := *h.rules
	change(&next)
	h.rules = &next
}

func (h *inspecting) policy() *Rules {
	h.rulesMu.Lock()
	defer h.rulesMu.Unlock()
	return h.rules
}

// onlyTest allows name.test and everything beneath it, on any port.
var onlyTest = policy.NetworkRules{AllowedDomains: []string{"name.test", "*.name.test", "127.0.0.1"}}

// terminating starts a server with termination. change may alter the options.
func terminating(t testing.TB, o *origin, change ...func(*Options)) *inspecting {
	t.Helper()
	ours, theirs := authorities()
	network, err := policy.NewNetwork(onlyTest)
	if err != nil {
		t.Fatal(err)
	}
	i := &inspecting{origin: o, rules: &Rules{Network: network}}
	first := func(opts *Options) {
		opts.Policy = i.policy
		opts.Terminate = &Termination{CA: ours, Roots: func() *x509.CertPool { return poolOf(theirs) }}
		opts.Resolver = resolves("name.test", "127.0.0.1")
	}
	i.harness = start(t, onlyTest, append([]func(*Options){first}, change...)...)
	if o != nil {
		i.target = fmt.Sprintf("name.test:%d", o.port)
	}
	return i
}

// secured is a client inside a tunnel.
type secured struct {
	*peer
	tls *tls.Conn
}

// shake opens a tunnel to the target and shakes hands as a client that asks for a name.
func (h *inspecting) shake(name string, change ...func(*tls.Config)) *secured {
	h.t.Helper()
	c := shakeOn(h.tunnel(h.target), name, change...)
	h.clients = append(h.clients, c)
	return c
}

func shakeOn(p *peer, name string, change ...func(*tls.Config)) *secured {
	p.t.Helper()
	ours, _ := authorities()
	conf := &tls.Config{ServerName: name, RootCAs: poolOf(ours)}
	for _, f := range change {
		f(conf)
	}
	c := tls.Client(p.TCPConn, conf)
	if err := c.Handshake(); err != nil {
		p.t.Fatal(err)
	}
	return &secured{&peer{p.TCPConn, p.t, bufio.NewReader(c)}, c}
}

// send writes inside the tunnel.
func (s *secured) send(format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.tls, format, args...); err != nil {
		s.t.Fatal(err)
	}
}

// ask sends a request and reads the response.
func (s *secured) ask(format string, args ...any) (status int, header http.Header, body string) {
	s.t.Helper()
	s.send(format, args...)
	return s.response("GET")
}

func (s *secured) response(method string) (status int, header http.Header, body string) {
	s.t.Helper()
	resp, err := http.ReadResponse(s.br, &http.Request{Method: method})
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("after %q: %v", b, err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// get is a request for a path of the target.
func (h *inspecting) get(path string) string {
	return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, h.target)
}

// ended reads to the proper end of the TLS connection, and closes the client's side.
func (s *secured) ended() {
	s.t.Helper()
	if rest := s.rest(); rest != "" {
		s.t.Errorf("then %q", rest)
	}
	s.Close()
}

// free closes the clients that are left and waits until no slot of a tunnel and no connection is taken.
func (h *inspecting) free() {
	h.t.Helper()
	for _, c := range h.clients {
		c.Close()
	}
	h.clients = nil
	taken := func() int {
		h.server.tunnels.mu.Lock()
		defer h.server.tunnels.mu.Unlock()
		return h.server.tunnels.taken
	}
	if !settles(func() bool { return taken() == 0 && h.held() == 0 }) {
		h.t.Errorf("%d tunnels and %d connections are held", taken(), h.held())
	}
}

// masking masks variables with values, for all hosts that are allowed unless hosts are given, and returns what stands for
// each.
func masking(t testing.TB, values map[string]string, hosts ...string) (*credential.Store, map[string]string) {
	t.Helper()
	store, err := credential.NewStore()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	var section config.Credentials
	for name := range values {
		section.EnvVars = append(section.EnvVars, config.EnvCredential{
			Name: name, Credential: config.Credential{Mode: config.ModeMask, InjectHosts: hosts},
		})
	}
	masked, err := store.Mask(credential.Spec{
		Credentials: &section, DefaultHosts: []string{"name.test"},
		LookupEnv: func(name string) (string, bool) { v, ok := values[name]; return v, ok },
	})
	if err != nil {
		t.Fatal(err)
	}
	fakes := map[string]string{}
	for _, v := range masked.Variables() {
		fakes[v.Name] = v.Value
	}
	return store, fakes
}

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// logger writes everything to l.
func (l *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// mustNetwork is onlyTest with ranges that no name may resolve to.
func mustNetwork(t testing.TB, denied ...string) *policy.Network {
	t.Helper()
	say := onlyTest
	say.DeniedResolvedAddresses = denied
	network, err := policy.NewNetwork(say)
	if err != nil {
		t.Fatal(err)
	}
	return network
}

func hostOf(t testing.TB, name string) config.Host {
	t.Helper()
	h, err := config.CanonicalHost(name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func addrOf(s string) netip.Addr { return netip.MustParseAddr(s) }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// tlsConfig spares test files that change one field of it the import.
type tlsConfig = tls.Config

// echoHead answers a request with its head as the body.
func echoHead(c *net.TCPConn) {
	br := bufio.NewReader(c)
	var head strings.Builder
	for {
		line, err := br.ReadString('\n')
		if head.WriteString(line); err != nil || line == "\r\n" {
			break
		}
	}
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", head.Len(), head.String())
}

// serveTLS runs a server for name.test that hands each secured connection to a function.
func serveTLS(t testing.TB, handle func(net.Conn)) (port int) {
	t.Helper()
	_, theirs := authorities()
	leaf, err := theirs.Leaf("name.test")
	if err != nil {
		t.Fatal(err)
	}
	return serveEach(t, func(c *net.TCPConn) {
		secured := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*leaf}})
		if secured.Handshake() == nil {
			handle(secured)
		}
	}).Port
}
