package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/proxy/credential"
)

// TestTLS25_TLS36_UpstreamNames: the server is asked for the target of the tunnel and must be it, whatever name the client asked for; an
// address is asked for by no name, and must be in the certificate.
func TestTLS25_TLS36_UpstreamNames(t *testing.T) {
	_, theirs := authorities()
	for _, tc := range []struct {
		target, asked, shows string
		names                string // in the ClientHello upstream
		status               int
	}{
		{"name.test", "name.test", "name.test", "name.test", 200},
		{"name.test", "other.test", "name.test", "name.test", 200},
		{"name.test", "other.test", "other.test", "name.test", 502},
		{"name.test", "", "name.test", "name.test", 200},
		{"NAME.test.", "name.test", "name.test", "name.test", 200},
		{"127.0.0.1", "name.test", "127.0.0.1", "", 200},
		{"127.0.0.1", "name.test", "name.test", "", 502},
		{"127.0.0.1", "", "127.0.0.2", "", 502},
		{"2130706433", "", "127.0.0.1", "", 200},
	} {
		leaf, err := theirs.Leaf(tc.shows)
		if err != nil {
			t.Fatal(err)
		}
		seen := make(chan string, 4)
		o := serveOriginAs(t, &tls.Config{Certificates: []tls.Certificate{*leaf}, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			seen <- hello.ServerName + strings.Join(hello.SupportedProtos, ",")
			return nil, nil //nolint:nilnil // as it is
		}}, nil)
		h := terminating(t, o)
		h.target = fmt.Sprintf("%s:%d", tc.target, o.port)
		c := h.shake(tc.asked, func(conf *tls.Config) { conf.InsecureSkipVerify = true })
		status, _, _ := c.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if got := <-seen; status != tc.status || strings.TrimSuffix(got, "http/1.1") != tc.names {
			t.Errorf("%+v: %d, the server was asked for %q", tc, status, got)
		}
		if tc.status != 200 {
			o.untouched()
		}
		h.free()
	}
}

// TestTLS45_UploadsWait: what a server does not take is not taken from the client, beyond what sockets hold.
func TestTLS45_UploadsWait(t *testing.T) {
	const size = 64 << 20
	reached := make(chan struct{})
	release := make(chan struct{})
	defer close(release)
	h := terminating(t, nil)
	h.server.inspection.Stall = time.Second
	h.target = fmt.Sprintf("name.test:%d", serveTLS(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		close(reached)
		<-release // and takes no more
	}))
	c := h.shake("name.test")
	c.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size)
	n := 0
	for block := make([]byte, 64<<10); n < size; {
		m, err := c.tls.Write(block)
		if n += m; err != nil {
			break
		}
	}
	<-reached
	if n >= size {
		t.Errorf("all of %d bytes were taken for a server that reads one", n)
	}
	c.Close()
	h.free()
}

// TestREQ13_SchemesAndTargets: what a filter is told of where a request goes is the target of the connection, and the scheme that it came by.
func TestREQ13_SchemesAndTargets(t *testing.T) {
	var seen FilterRequest
	j := judging(t, Options{Filtering: Filtering{Filter: func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
		seen = *r
		return FilterDecision{Action: FilterAllow}, nil
	}}})
	tunnel := func(method, target string) *request { return inTunnel(t, method, target, "Host: evil.test") }
	plain := func(method, target string) *request { return inCleartext(t, method, target, "Host: evil.test") }
	for _, tc := range []struct {
		r                        *request
		scheme, url, target, out string
	}{
		{tunnel("GET", "/a?b"), "https", "https://api.example.com/a?b", "/a?b", "/a?b"},
		{tunnel("GET", "http://evil.test/a"), "https", "https://api.example.com/a", "/a", "/a"},
		{tunnel("OPTIONS", "*"), "https", "https://api.example.com", "*", "*"},
		{plain("GET", "http://api.example.com/a"), "http", "http://api.example.com/a", "/a", "/a"},
		{plain("GET", "https://api.example.com/a"), "http", "https://api.example.com/a", "/a", "/a"},
		{plain("GET", "http://api.example.com:8080"), "http", "http://api.example.com:8080/", "/", "/"},
	} {
		a, refused := j.judgeRequest(t.Context(), tc.r)
		if refused || seen.Scheme != tc.scheme || seen.URL != tc.url || seen.RequestTarget != tc.target || tc.r.path != tc.out || seen.Host != "api.example.com" {
			t.Errorf("%s %s: %+v, %+v, out %q", tc.r.method, tc.r.target, a, seen, tc.r.path)
		}
	}
}

// TestREQ15_REQ16_Bounds: the last statuses and values that count on either side, and every byte that ends a field.
func TestREQ15_REQ16_Bounds(t *testing.T) {
	for status, want := range map[int]string{
		399: "403 ", 400: "400 ", 404: "404 ", 418: "418 ", 499: "499 ", 599: "599 ", 600: "403 ", -1: "403 ", 0: "403 ", 99999: "403 ",
	} {
		j := judging(t, Options{Filtering: Filtering{Filter: denying("no", status)}})
		if a, refused := j.judgeRequest(t.Context(), inTunnel(t, "GET", "/", "Host: x")); !refused || !strings.HasPrefix(a.status, want) || a.body != "no\n" {
			t.Errorf("status %d: %+v", status, a)
		}
	}
	for b := range 256 {
		value := "a" + string([]byte{byte(b)}) + "b"
		j := judging(t, Options{Filtering: Filtering{Filter: allowing(FilterDecision{SetHeaders: []HeaderField{{"A", value}}})}})
		r := inTunnel(t, "GET", "/", "Host: x")
		a, refused := j.judgeRequest(t.Context(), r)
		if control := b < ' ' && b != '\t' || b == 0x7f; refused != control ||
			refused && a.body != "malformed filterRequest decision: setHeaders holds an invalid header value\n" {
			t.Errorf("byte %#x: %+v", b, a)
		}
	}
	for _, name := range []string{"", "a b", "a:", "a\r\n", "é", "(", "a\x00"} {
		for what, d := range map[string]FilterDecision{
			"removeHeaders": {RemoveHeaders: []string{name}}, "setHeaders": {SetHeaders: []HeaderField{{name, "v"}}},
		} {
			j := judging(t, Options{Filtering: Filtering{Filter: allowing(d)}})
			a, refused := j.judgeRequest(t.Context(), inTunnel(t, "GET", "/", "Host: x"))
			if !refused || a.body != "malformed filterRequest decision: "+what+" holds an invalid header name\n" {
				t.Errorf("%s %q: %+v", what, name, a)
			}
		}
	}
}

// TestTLS22_SOCKSBytesAreNotRead: what looks like TLS behind SOCKS reaches the server as it came, handshake and all.
func TestTLS22_SOCKSBytesAreNotRead(t *testing.T) {
	_, theirs := authorities()
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	p := h.dial()
	p.send("%s%s", socksLogin("srt", testToken), socksName(1, "name.test", o.port))
	p.want(socksAdmitted + socksAnswer(0))
	c := shakeOn(p, "name.test", func(conf *tls.Config) { conf.RootCAs = poolOf(theirs) }) // the server's own certificate
	if status, _, _ := c.ask("%s", h.get("/")); status != 200 {
		t.Error(status)
	}
	if got := c.tls.ConnectionState().PeerCertificates[0].Issuer.CommonName; got != theirs.Certificate().Subject.CommonName {
		t.Errorf("issued by %s", got)
	}
	_ = c.tls.Close()
	_, _ = io.Copy(io.Discard, p)
}

// TestCRED29_CRED31_REQ3_case34_AWSRefusalsInATunnel: every shape that cannot be signed, and what is wrong with one that could, is refused
// with a violation that holds no query; a live update lets the shapes through, and their fakes with them.
func TestCRED29_CRED31_REQ3_case34_AWSRefusalsInATunnel(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h, fakes, _ := injecting(t, o, awsValues)
	id := fakes["AWS_ACCESS_KEY_ID"]
	cleaned := strings.NewReplacer("\n", "", "<", "", ">", "") // VIO-20
	const scope = "/20150830/us-east-1/s3/aws4_request"
	presigned := "GET /key?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + strings.ReplaceAll(id+scope, "/", "%2F") +
		"&X-Amz-Date=20150830T123600Z&X-Amz-SignedHeaders=host&X-Amz-Signature=00 HTTP/1.1\r\nHost: x\r\n\r\n"
	asymmetric := "GET /key HTTP/1.1\r\nHost: x\r\nX-Amz-Date: 20150830T123600Z\r\nAuthorization: AWS4-ECDSA-P256-SHA256 Credential=" + id +
		"/20150830/s3/aws4_request, SignedHeaders=host, Signature=00\r\n\r\n"
	streaming := awsHead("PUT", id, "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\n")
	plain := func(old, instead string) string { return strings.Replace(awsHead("PUT", id, ""), old, instead, 1) }
	for _, tc := range []struct {
		name, request, begins string
		policy                func(*Rules) // lets it through; nil: nothing does
	}{
		{"streaming", streaming, "AWS SigV4 streaming request uses a masked credential", func(r *Rules) { r.SigV4.Streaming = true }},
		{"presigned", presigned, "AWS SigV4 presigned request uses a masked credential", func(r *Rules) { r.SigV4.Presigned = true }},
		{"sigv4a", asymmetric, "AWS SigV4 sigv4a request uses a masked credential", func(r *Rules) { r.SigV4.SigV4A = true }},
		{"no date", plain("X-Amz-Date: 20150830T123600Z\r\n", ""), "", nil},
		{"scope of another kind", plain("aws4_request", "aws5_request"), "", nil},
		{"a part missing", plain("/us-east-1/", "//"), "", nil},
		{"a signed header that is not there", plain("SignedHeaders=host;x-amz-date", "SignedHeaders=host;x-amz-date;x-gone"), "", nil},
	} {
		before := len(h.lines())
		c := h.shake("name.test")
		status, header, body := c.ask("%s", tc.request)
		if status != 403 || header.Get("X-Proxy-Error") != markRuntime || !strings.HasPrefix(body, tc.begins) ||
			tc.policy != nil && !strings.Contains(body, `Set credentials.sigv4.`+tc.name+` to "passthrough"`) {
			t.Errorf("%s: %d %q", tc.name, status, body)
		}
		c.ended()
		lines := h.lines()[before:]
		if len(lines) != 1 || !strings.HasSuffix(lines[0], " ("+cleaned.Replace(body)+")") || strings.Contains(lines[0], "X-Amz-") {
			t.Errorf("%s: violations %q for %q", tc.name, lines, body)
		}
		o.untouched()
		if strings.Contains(body, id) {
			t.Errorf("%s: the answer repeats the fake: %q", tc.name, body)
		}
	}
	h.update(func(r *Rules) { r.SigV4 = credential.SigV4Policy{Streaming: true, Presigned: true, SigV4A: true} })
	c := h.shake("name.test")
	for i, request := range []string{streaming, presigned, asymmetric} {
		if status, _, _ := c.ask("%s", request); status != 200 {
			t.Errorf("%d: %d", i, status)
		}
		if got := o.got(); strings.Contains(request, "Authorization") && !strings.Contains(got[i], "Credential=AKIDEXAMPLE/") || i == 1 && !strings.Contains(got[i], "="+id+"%2F") {
			t.Errorf("%d: ordinary substitution: %q", i, got[i]) // CRED-22: never in a target
		}
	}
	h.free()
}
