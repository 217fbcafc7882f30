package decider

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
)

func TestPRX32_BadHellosEndTheLink(t *testing.T) {
	for frame, want := range map[string]string{
		`{"t":"hello","proto":2,"allowedDomains":[],"deniedDomains":[]}`:           "bad hello",
		`{"t":"hello","proto":1,"allowedDomains":["*"],"deniedDomains":[]}`:        "bad hello",
		`{"t":"hello","proto":1,"allowedDomains":["A.com"],"deniedDomains":[]}`:    "bad hello",
		`{"t":"hello","proto":1,"allowedDomains":["a.com."],"deniedDomains":[]}`:   "bad hello",
		`{"t":"hello","proto":1,"allowedDomains":["a_b.com"],"deniedDomains":[]}`:  "bad hello",
		`{"t":"hello","proto":1,"allowedDomains":["a.com:0"],"deniedDomains":[]}`:  "bad hello",
		`{"t":"hello","proto":1,"allowedDomains":[]}`:                              "bad hello",
		`{"t":"verdict","id":1,"action":"allow"}`:                                  "bad hello",
		`{"t":"hello","proto":1,"proto":1,"allowedDomains":[],"deniedDomains":[]}`: "duplicate key in frame",
		`{"t":"hello","\u0074":"hello","proto":1}`:                                 "duplicate key in frame",
		``:                                "frame is not valid JSON",
		`{"t":null}`:                      "null in frame",
		`[]`:                              "frame is not one JSON object",
		"\xff":                            "frame is not UTF-8",
		`{"t":"\ud800"}`:                  "lone surrogate in frame",
		`{"t":"hello"}` + `{"t":"hello"}`: "frame is not valid JSON",
	} {
		r := begin(t)
		r.next()
		r.send("%s", frame)
		if got := r.ended(); got != "decider: "+want {
			t.Errorf("cases 1 to 4: %s: %q, want %q", frame, got, want)
		}
	}
}

func TestPRX30_OversizedFrame(t *testing.T) {
	r := begin(t)
	r.next()
	if _, err := r.conn.Write([]byte{0, 0x10, 0, 1}); err != nil {
		t.Fatal(err)
	}
	if got := r.ended(); got != "decider: oversized frame" {
		t.Errorf("case 3: %q", got)
	}
	r = begin(t)
	r.next()
	if _, err := r.conn.Write([]byte{0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	_ = r.conn.Close()
	if got := r.ended(); got != "decider: decider closed the stream" {
		t.Errorf("half a length: %q", got)
	}
}

func TestPRX4_NothingIsAcceptedBeforeTheHello(t *testing.T) {
	served := make(chan struct{})
	r := begin(t, WithServing(func() { close(served) }))
	r.next()
	c := r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n") // waits in the backlog
	select {
	case <-served:
		t.Fatal("it serves without a hello")
	default:
	}
	r.send(allowAll)
	await(t, served)
	r.want("req", 1)
	r.allow(1)
	if got := c.hears("GET"); got.status != 200 {
		t.Error(got)
	}
}

func TestPRX3_EndBeforeServing(t *testing.T) {
	r := begin(t)
	r.next()
	r.cancel(io.ErrNoProgress)
	if got := r.ended(); got != io.ErrNoProgress.Error() {
		t.Errorf("PRX-70: %q", got)
	}
}

func TestPRX35_36_46_AsSpelled(t *testing.T) {
	r := start(t, allowAll)
	c := r.say("GET http://U/a/../b?x=1 HTTP/1.1\r\nHost: U\r\nX-A: 1\r\nProxy-Connection: keep-alive\r\nx-a: 2\r\nX-L: \xe9\r\n\r\n")
	req := r.want("req", 1)
	host, _, _ := strings.Cut(r.up.host, ":")
	headers := req["headers"].(map[string]any)
	if req["path"] != "/a/../b" || req["query"] != "x=1" || req["host"] != host || req["hostHeader"] != r.up.host || req["sni"] != nil ||
		fmt.Sprint(headers) != "map[proxy-connection:[keep-alive] x-a:[1 2] x-l:[é]]" {
		t.Errorf("cases 5, 6, 25: %v", req)
	}
	r.allow(1)
	if got := c.hears("GET"); got.status != 200 {
		t.Fatal(got)
	}
	want := "GET /a/../b?x=1 HTTP/1.1\r\nHost: U\r\nX-A: 1\r\nx-a: 2\r\nX-L: \xe9\r\n\r\n"
	if got := r.up.last().head; got != strings.ReplaceAll(want, "U", r.up.host) {
		t.Errorf("cases 5, 6, 25: upstream got %q", got)
	}
	c.say(strings.ReplaceAll("GET http://U HTTP/1.1\r\nHost: U\r\n\r\n", "U", r.up.host)) // PRX-23, and a second request of the connection
	if req := r.want("req", 2); req["path"] != "/" {
		t.Errorf("PRX-23: %v", req)
	}
	r.allow(2)
	c.hears("GET")
	if n := r.up.dialled(); n != 1 {
		t.Errorf("PRX-14: %d upstream connections", n)
	}
}

func TestPRX20to26_RefusedBeforeTheDecider(t *testing.T) {
	r := start(t, allowAll)
	var many strings.Builder
	for range 191 {
		many.WriteString("a: b\r\n")
	}
	for _, test := range []struct {
		name, request string
		status        int
		mark          mark
		text          string
	}{
		{"case 5", "GET http://U/#f HTTP/1.1\r\nHost: U\r\n\r\n", 400, "bad_request", malformedTarget},
		{"case 23", "GET / HTTP/1.1\r\nHost: U\r\n\r\n", 400, "bad_request", ""},
		{"case 23", "GET http://u:p@U/ HTTP/1.1\r\nHost: U\r\n\r\n", 400, "bad_request", ""},
		{"case 23", "GET http://ex%61mple.com/ HTTP/1.1\r\nHost: U\r\n\r\n", 400, "bad_request", ""},
		{"case 23", "GET http://U//x HTTP/1.1\r\nHost: U\r\n\r\n", 400, "bad_request", malformedTarget},
		{"PRX-23 backslash", "GET http://U/\\x HTTP/1.1\r\nHost: U\r\n\r\n", 400, "bad_request", malformedTarget},
		{"PRX-20 asterisk", "OPTIONS * HTTP/1.1\r\nHost: U\r\n\r\n", 400, "bad_request", ""},
		{"PRX-20 scheme", "GET ftp://U/ HTTP/1.1\r\nHost: U\r\n\r\n", 400, "bad_request", ""},
		{"PRX-20 not HTTP", "\x16\x03\x01 hello\r\n\r\n", 400, "bad_request", ""},
		{"PRX-20 no name", "GET http://U/ HTTP/1.1\r\nHost: U\r\n: x\r\n\r\n", 400, "bad_request", ""},
		{"PRX-20 smuggling", "POST http://U/ HTTP/1.1\r\nHost: U\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "bad_request", ""},
		{"PRX-20 CONNECT", "CONNECT u.test HTTP/1.1\r\nHost: U\r\n\r\n", 400, "bad_request", ""},
		{"PRX-22", "GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n", 403, "host_not_allowed", "Connection blocked by network allowlist"},
		{"PRX-22 denied", "GET http://no.u.test/ HTTP/1.1\r\nHost: no.u.test\r\n\r\n", 403, "host_not_allowed", "Connection blocked by network allowlist"},
		{"PRX-22 comes before PRX-23", "GET http://other.test//x HTTP/1.0\r\n\r\n", 403, "host_not_allowed", "Connection blocked by network allowlist"},
		{"PRX-24", "GET http://U/ HTTP/1.1\r\n\r\n", 400, "bad_request", ""},
		{"case 22", "GET http://U/ HTTP/1.1\r\nHost: other.test\r\n\r\n", 421, "misdirected", refusals[4].text},
		{"case 22", "GET http://U/ HTTP/1.1\r\nHost: u.test:1\r\n\r\n", 421, "misdirected", refusals[4].text},
		{"case 22", "GET http://U/ HTTP/1.1\r\nHost: U\r\nHost: U\r\n\r\n", 421, "misdirected", refusals[4].text},
		{"PRX-24 HTTP/1.0", "GET http://U/ HTTP/1.0\r\nHost: a\r\n\r\n", 421, "misdirected", refusals[4].text},
		{"PRX-25", "TRACE http://U/ HTTP/1.1\r\nHost: U\r\n\r\n", 405, "method_refused", "the TRACE method is not forwarded"},
		{"PRX-25", "track http://U/ HTTP/1.1\r\nHost: U\r\n\r\n", 405, "method_refused", "the TRACE method is not forwarded"},
		{"case 24 headers", "GET http://U/ HTTP/1.1\r\nHost: U\r\n" + many.String() + "\r\n", 400, "bad_request", string(headersTooLarge)},
		{"case 24 long header", "GET http://U/ HTTP/1.1\r\nHost: U\r\na: " + strings.Repeat("b", 70000) + "\r\n\r\n", 400, "bad_request", string(headersTooLarge)},
		{"case 24 path", "GET http://U/" + strings.Repeat("p", 8192) + " HTTP/1.1\r\nHost: U\r\n\r\n", 400, "bad_request", string(targetTooLarge)},
		{"case 24 query", "GET http://U/?" + strings.Repeat("q", 1<<20) + " HTTP/1.1\r\nHost: U\r\n\r\n", 400, "bad_request", string(frameTooLarge)},
		{"PRX-20 2 MiB", "GET http://U/ HTTP/1.1\r\nHost: U\r\na: " + strings.Repeat("b", 2<<20) + "\r\n\r\n", 400, "bad_request", ""},
		{"case 25", "GET http://U/ HTTP/1.1\r\nHost: U\r\na: \x85\r\n\r\n", 400, "bad_request", string(badHeader)},
		{"case 26", "CONNECT u.test:443 HTTP/1.1\r\nHost: u.test:443\r\n\r\n", 403, "opaque_tunnel", "this proxy does not tunnel CONNECTs it cannot inspect"},
	} {
		r.say(test.request).refused(test.name, test.status, test.mark, test.text)
	}
	c := r.say("GET http://U/ HTTP/1.0\r\n\r\n") // PRX-24: HTTP/1.0 without Host is fine, and the first that the decider sees
	if req := r.want("req", 1); req["hostHeader"] != nil {
		t.Errorf("PRX-35: %v", req)
	}
	r.allow(1)
	if got := c.hears("GET"); got.status != 200 {
		t.Error(got)
	}
	if n := r.up.dialled(); n != 1 {
		t.Errorf("%d connections for refused requests", n-1)
	}
}

func TestPRX41_Denials(t *testing.T) {
	r := start(t, allowAll)
	c := r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n")
	r.want("req", 1)
	r.send(`{"t":"verdict","id":1,"action":"deny","status":451,"reason":"no\twäy"}`)
	c.refused("case 11", 451, "decider", "no\twäy")
	c = r.say("HEAD http://U/ HTTP/1.1\r\nHost: U\r\n\r\n")
	r.want("req", 2)
	r.send(`{"t":"verdict","id":2,"action":"deny","status":404}`)
	if got := c.hears("HEAD"); got.status != 404 || got.header.Get("Content-Length") != fmt.Sprint(len(defaultDenial)+1) || got.header.Get("Content-Type") != "text/plain" {
		t.Errorf("HEAD: %v", got)
	}
	c.closed("PRX-41: nothing follows the answer to HEAD")
	c = r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n")
	r.want("req", 3)
	r.send(`{"t":"verdict","id":3,"action":"deny","status":500}`)
	c.refused("case 11", 500, "decider", "denied by sandbox policy")
	if n := r.up.dialled(); n != 0 {
		t.Errorf("%d connections for denied requests", n)
	}
}

func TestPRX48_49_InCleartext(t *testing.T) {
	for _, fields := range []string{`"action":"allow","cred":"o","credential":"s"`, `"action":"allow","setHeaders":{"x-a":["1"]}`} {
		r := start(t, allowAll)
		r.always(fields)
		r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n").refused("case 9", 403, "plaintext_header_set", refusals[8].text)
		c := r.dial()
		_, port, _ := strings.Cut(r.up.host, ":")
		c.say("GET https://u.test:" + port + "/ HTTP/1.1\r\nHost: u.test:" + port + "\r\n\r\n")
		c.refused("PRX-48 https in cleartext", 403, "plaintext_header_set", refusals[8].text)
		if n := r.up.dialled(); n != 0 {
			t.Errorf("case 9: %d connections", n)
		}
	}
	r := start(t, allowAll, WithPlaintextHeaderSet())
	r.always(`"action":"allow","cred":"o","credential":"s","setHeaders":{"x-a":["é"]}`)
	if got := r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\nCookie: c\r\nX_A: 0\r\n\r\n").hears("GET"); got.status != 200 {
		t.Error(got)
	}
	if got, want := r.up.last().head, "GET / HTTP/1.1\r\nHost: "+r.up.host+"\r\nx-a: \xe9\r\nAuthorization: Bearer s\r\n\r\n"; got != want {
		t.Errorf("case 9: upstream got %q", got)
	}
	r = start(t, allowAll)
	c := r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\nX_API.KEY: k\r\nX-A: 1\r\n\r\n")
	r.want("req", 1)
	r.send(`{"t":"verdict","id":1,"action":"allow","removeHeaders":["x-api-key"],"setHeaders":{"x-a":[]}}`)
	c.hears("GET")
	if got, want := r.up.last().head, "GET / HTTP/1.1\r\nHost: "+r.up.host+"\r\nX-A: 1\r\n\r\n"; got != want {
		t.Errorf("cases 7, 14: upstream got %q", got)
	}
	r = start(t, allowAll, WithPlaintextHeaderSet())
	c = r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n")
	r.want("req", 1)
	r.send(`{"t":"verdict","id":1,"action":"allow","setHeaders":{"x-a":["Ā"]}}`)
	c.refused("case 14", 403, "denied", refusals[10].text)
	c = r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n")
	r.want("req", 2) // the link lives
	r.allow(2)
	c.hears("GET")
}

func TestPRX60_LinkEndsWithRequestsPending(t *testing.T) {
	for _, test := range []struct {
		name, want string
		end        func(r *running)
	}{
		{"case 20", "decider closed the stream", func(r *running) { _ = r.conn.Close() }},
		{"case 19", "verdict for id 9, which nothing waits on", func(r *running) { r.allow(9) }},
		{"case 12", "bad verdict frame", func(r *running) { r.send(`{"t":"verdict","id":1,"action":"deny","status":399}`) }},
		{"case 13", "bad verdict frame", func(r *running) { r.send(`{"t":"verdict","id":1,"action":"allow","setHeaders":{}}`) }},
		{"PRX-32 second hello", "bad verdict frame", func(r *running) { r.send(allowAll) }},
		{"PRX-6", "closed", func(r *running) { r.cancel(io.ErrNoProgress) }},
	} {
		r := start(t, allowAll)
		c := r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n")
		r.want("req", 1)
		test.end(r)
		c.refused(test.name, 503, "decider_unavailable", "request decider: "+test.want)
		if test.want == "closed" {
			test.want = io.ErrNoProgress.Error()
		} else {
			test.want = "decider: " + test.want
		}
		if got := r.ended(); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if r.up.dialled() != 0 {
			t.Errorf("%s: something was forwarded", test.name)
		}
	}
}

func TestPRX58_ClientThatLeft(t *testing.T) {
	left := make(chan struct{}, 1)
	r := start(t, allowAll, WithLogger(slog.New(slog.NewTextHandler(logged{"the client has left", left}, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	c := r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n")
	r.want("req", 1)
	_ = c.Close()
	await(t, left)
	other := r.say("GET http://U/other HTTP/1.1\r\nHost: U\r\n\r\n")
	r.want("req", 2) // no cancel message came before
	r.allow(1)
	r.allow(2)
	other.hears("GET")
	if got := r.up.last().head; !strings.HasPrefix(got, "GET /other ") {
		t.Errorf("upstream got %q", got)
	}
}

func TestPRX50_ClientThatAbortsItsBody(t *testing.T) {
	r := start(t, allowAll)
	c := r.say("POST http://U/ HTTP/1.1\r\nHost: U\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
	r.want("req", 1)
	r.allow(1)
	await(t, r.up.begun)
	_ = c.Close()
	await(t, r.up.got)
	if got := r.up.last(); got.err == nil {
		t.Errorf("an aborted body looks complete: %q", got.body)
	}
	c = r.say("POST http://U/ HTTP/1.1\r\nHost: U\r\nContent-Length: 9\r\n\r\nhi")
	r.want("req", 2)
	r.send(`{"t":"verdict","id":2,"action":"need_body","max":5}`)
	_ = c.Close()
	r.send(`{"t":"verdict","id":2,"action":"deny","status":403}`) // dropped, or just in time
	r.say("GET http://U/x HTTP/1.1\r\nHost: U\r\n\r\n")
	r.want("req", 3)
}

func TestPRX66_67_Upstream(t *testing.T) {
	r := start(t, allowAll)
	r.always(`"action":"allow"`)
	r.say("GET http://private.test/ HTTP/1.1\r\nHost: private.test\r\n\r\n").
		refused("case 27", 403, "address_not_allowed", "Connection to private.test blocked: resolved to a listed address")
	got := r.say("GET http://gone.u.test/ HTTP/1.1\r\nHost: gone.u.test\r\n\r\n").hears("GET")
	if got.status != 502 || got.header.Get("X-Deny-Reason") != "" {
		t.Errorf("PRX-66: %v", got)
	}
	r.up.answers("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
	c := r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n")
	await(t, r.up.got)
	_ = r.up.ln.Close()
	r.cancel(nil)
	if got, err := c.try("GET"); err == nil {
		t.Errorf("PRX-66: a cut response looks complete: %v", got)
	}
}

func TestPRX68_Responses(t *testing.T) {
	r := start(t, allowAll, WithStripResponseHeaders("set-cookie"))
	r.always(`"action":"allow"`)
	r.up.answers("HTTP/1.1 200 OK\r\nX-Deny-Reason: decider\r\nSet_Cookie: a\r\nSet-Cookie: b\r\nX-Other: c\r\nContent-Length: 2\r\n\r\nok")
	got := r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n").hears("GET")
	if got.status != 200 || got.body != "ok" || got.header.Get("X-Other") != "c" || len(got.header["X-Deny-Reason"])+len(got.header["Set_cookie"])+len(got.header["Set-Cookie"]) > 0 {
		t.Errorf("case 28: %v", got)
	}
}

func TestPRX6_IdleConnectionsCloseAtTheEnd(t *testing.T) {
	r := start(t, allowAll)
	idle := r.dial()
	c := r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n")
	r.want("req", 1)
	r.allow(1)
	c.hears("GET")
	r.cancel(io.ErrNoProgress)
	c.closed("a connection between two requests")
	idle.closed("a connection without any")
	r.ended()
	if _, err := r.tryDial(); err == nil {
		t.Error("it still accepts")
	}
}

// logged signals lines that hold a text.
type logged struct {
	text string
	seen chan struct{}
}

func (l logged) Write(line []byte) (int, error) {
	if strings.Contains(string(line), l.text) {
		l.seen <- struct{}{}
	}
	return len(line), nil
}
