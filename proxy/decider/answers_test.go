package decider

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPRX65_EveryRefusalIsMarked: the table of the rule, value by value, and no other.
func TestPRX65_EveryRefusalIsMarked(t *testing.T) {
	rows := map[mark]string{
		"bad_request": "400 Bad Request", "host_not_allowed": "403 Forbidden: Connection blocked by network allowlist",
		"opaque_tunnel":        "403 Forbidden: this proxy does not tunnel CONNECTs it cannot inspect",
		"too_many_tunnels":     "503 Service Unavailable: too many TLS-terminated tunnels at once",
		"misdirected":          "421 Misdirected Request: " + refusals[4].text,
		"method_refused":       "405 Method Not Allowed: the TRACE method is not forwarded",
		"decider_unavailable":  "503 Service Unavailable",
		"bodyless_method_body": "403 Forbidden", "plaintext_header_set": "403 Forbidden: " + refusals[8].text,
		"address_not_allowed": "403 Forbidden", "denied": "403 Forbidden: " + refusals[10].text,
	}
	for _, r := range refusals {
		status, text, _ := strings.Cut(rows[r.mark], ": ")
		want := "HTTP/1.1 " + status + "\r\nX-Deny-Reason: " + string(r.mark) + "\r\n"
		if text != "" {
			text += "\n"
			want += "Content-Type: text/plain\r\n"
		}
		want += fmt.Sprintf("Content-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
		if got := string(refuse(r.mark, "", "GET")); status == "" || got != want {
			t.Errorf("PRX-65 %s:\n got %q\nwant %q", r.mark, got, want)
		}
		delete(rows, r.mark)
	}
	for m := range rows {
		t.Errorf("PRX-65: %s is no mark", m)
	}
	if got := string(refuse("unknown", "secret", "GET")); !strings.HasPrefix(got, "HTTP/1.1 403 ") || !strings.Contains(got, "X-Deny-Reason: denied\r\n") {
		t.Errorf("a mark that is none: %q", got)
	}
}

// TestPRX52_TextsOfTheUnavailable: what a client reads once the link is dead, when it dies under a request, and when a verdict for the
// request breaks the protocol.
func TestPRX52_TextsOfTheUnavailable(t *testing.T) {
	l := newLink(&stuck{closed: make(chan struct{})}, newDiscard())
	l.close()
	<-l.dead
	p := &proxyRun{link: l, settings: &settings{verdictTimeout: time.Minute}}
	_, err := p.ask(t.Context(), &question{}, "GET", nil, 0)
	var no *refused
	if !errors.As(err, &no) || no.mark != markUnavailable || no.text != "request decider unavailable" {
		t.Errorf("after the end of the link: %v", err)
	}
	for name, tc := range map[string]struct {
		end  func(*running)
		text string
	}{
		"lost":           {func(r *running) { _ = r.conn.Close() }, "request decider: decider closed the stream"},
		"of its own":     {func(r *running) { r.send(`{"t":"verdict","id":1,"action":"need_body","max":0}`) }, "request decider: bad verdict frame"},
		"own shutdown":   {func(r *running) { r.cancel(io.ErrNoProgress) }, "request decider: closed"},
		"of another":     {func(r *running) { r.allow(7) }, "request decider: verdict for id 7, which nothing waits on"},
		"hello a second": {func(r *running) { r.send(allowAll) }, "request decider: bad verdict frame"},
	} {
		r := start(t, allowAll)
		c := r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n")
		r.want("req", 1)
		tc.end(r)
		c.refused("PRX-52 "+name, 503, "decider_unavailable", tc.text)
	}
}

// TestPRX11_WithoutAnAuthority: no tunnel, whatever its host, and cleartext as ever (case 26).
func TestPRX11_WithoutAnAuthority(t *testing.T) {
	r := start(t, allowAll)
	r.always(`"action":"allow"`)
	for _, target := range []string{"u.test:443", "u.test:22", "127.0.0.1:443", "other.test:443"} {
		r.say("CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n").
			refused("PRX-11 "+target, 403, "opaque_tunnel", "this proxy does not tunnel CONNECTs it cannot inspect")
	}
	if got := r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n").hears("GET"); got.status != 200 {
		t.Errorf("PRX-11 cleartext: %v", got)
	}
}

// TestPRX22_EveryPathIsTheDecidersToJudge: no path of any host is answered by the proxy itself (TLS-28 is not for it).
func TestPRX22_EveryPathIsTheDecidersToJudge(t *testing.T) {
	w := newTLSWorld(t)
	id := 0
	for _, host := range []string{w.up.host, "127.0.0.1:1", "u:80"} {
		id++
		c := w.dial()
		c.say("GET http://" + host + "/srt.crl HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
		if req := w.want("req", id); req["path"] != "/srt.crl" {
			t.Errorf("%s: %v", host, req)
		}
		w.send(`{"t":"verdict","id":%d,"action":"deny","status":404,"reason":"no"}`, id)
		c.refused(host, 404, "decider", "no")
	}
	w.dial().say("") // nothing asked, nothing answered
	c := w.dial()
	c.say("GET http://other.test/srt.crl HTTP/1.1\r\nHost: other.test\r\n\r\n")
	c.refused("not listed", 403, "host_not_allowed", "Connection blocked by network allowlist")
	c = w.dial()
	c.say("GET /srt.crl HTTP/1.1\r\nHost: " + w.addr + "\r\n\r\n")
	c.refused("origin form", 400, "bad_request", "")
}

// TestPRX35_NamesAndMethodsOfAnyKind: whatever is a token is a name or a method.
func TestPRX35_NamesAndMethodsOfAnyKind(t *testing.T) {
	r := start(t, allowAll)
	for i, method := range []string{"PROPFIND", "get", "M-SEARCH", "!#$%&'*+-.^_`|~"} {
		head := method + " http://U/ HTTP/1.1\r\nHost: U\r\nconstructor: 1\r\n__proto__: 2\r\ntoString: 3\r\n"
		c := r.say(head + "\r\n")
		req := r.want("req", i+1)
		headers := fmt.Sprint(req["headers"])
		if req["method"] != method || headers != "map[__proto__:[2] constructor:[1] tostring:[3]]" {
			t.Errorf("%s: %v", method, req)
		}
		r.allow(i + 1)
		if got := c.hears("POST"); got.status != 200 {
			t.Errorf("%s: %v", method, got)
		}
		want := strings.ReplaceAll(strings.Replace(head, "http://U", "", 1), "U", r.up.host) + "\r\n"
		if got := r.up.last().head; got != want {
			t.Errorf("upstream got %q, want %q", got, want)
		}
	}
}

// TestPRX26_WhatTheProtocolCannotCarry: each of the limits has its answer, also in a tunnel, and the decider is not asked.
func TestPRX26_WhatTheProtocolCannotCarry(t *testing.T) {
	w := newTLSWorld(t)
	for name, test := range map[string]struct{ field, target, text string }{
		"values":  {strings.Repeat("a: b\r\n", 191), "/", string(headersTooLarge)},
		"bytes":   {"a: " + strings.Repeat("b", 65536) + "\r\n", "/", string(headersTooLarge)},
		"path":    {"", "/" + strings.Repeat("p", 8192), string(targetTooLarge)},
		"frame":   {"", "/?" + strings.Repeat("q", 1<<20), string(frameTooLarge)},
		"control": {"a: \x9f\r\n", "/", string(badHeader)},
	} {
		c := w.inside()
		c.say("GET " + test.target + " HTTP/1.1\r\nHost: " + w.up.host + "\r\n" + test.field + "\r\n")
		c.refused("PRX-26 "+name, 400, "bad_request", test.text)
	}
	c := w.inside()
	w.get(c, w.up.host)
	w.want("req", 1) // the first that is asked
	w.allow(1)
	c.hears("GET")
}

// TestPRX69_ResponsesWait: a client that does not read its response holds back the upstream, until it is cut.
func TestPRX69_ResponsesWait(t *testing.T) {
	const size = 64 << 20
	r := start(t, allowAll, withLimits(func(l *limits) { l.stall = time.Second }))
	r.always(`"action":"allow"`)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	took := make(chan int, 1)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
		n := 0
		for block := make([]byte, 64<<10); n < size; {
			m, err := conn.Write(block)
			if n += m; err != nil {
				break
			}
		}
		took <- n
	}()
	c := r.dial()
	c.say(strings.ReplaceAll("GET http://U/ HTTP/1.1\r\nHost: U\r\n\r\n", "U", ln.Addr().String()))
	if n := <-took; n >= size {
		t.Errorf("all of %d bytes were taken for a client that reads none", n)
	}
}

// TestPRX6_13_51_55_67_Defaults: the times, counts and ranges that the other tests shorten.
func TestPRX6_13_51_55_67_Defaults(t *testing.T) {
	s, err := newSettings(nil)
	if err != nil {
		t.Fatal(err)
	}
	l := s.limits
	for _, row := range []struct {
		rule      string
		got, want any
	}{
		{"PRX-13 handshake", l.handshake, 10 * time.Second}, {"PRX-13 head", l.head, 10 * time.Second}, {"PRX-13 idle", l.idle, 6 * time.Second},
		{"PRX-13 movement", l.stall, 300 * time.Second}, {"PRX-13 tunnels", l.tunnels, 256}, {"PRX-6 shutdown", l.shutdown, time.Second},
		{"PRX-51 verdict", s.verdictTimeout, 5 * time.Second}, {"PRX-55 bodies", maxHeld, 64 << 20}, {"PRX-56 queue", maxQueued, 123032918},
		{"PRX-67 ranges", strings.Join(s.ranges, " "), "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7"},
		{"PRX-48 headers in cleartext", s.plaintext, false},
	} {
		if row.got != row.want {
			t.Errorf("%s: %v, want %v", row.rule, row.got, row.want)
		}
	}
}

// failing is a stream whose two directions end with errors of the system. A late one ends its reads only after a write has failed.
type failing struct {
	read, write error
	late        chan struct{}
	closed      chan struct{}
}

func (s *failing) Read([]byte) (int, error) {
	if s.late != nil {
		<-s.late
	}
	if s.read == nil {
		<-s.closed
		return 0, net.ErrClosed
	}
	return 0, s.read
}

func (s *failing) Write(p []byte) (int, error) {
	if s.write == nil {
		return len(p), nil
	}
	if s.late != nil {
		time.AfterFunc(time.Millisecond, func() { close(s.late) })
	}
	return 0, s.write
}

func (s *failing) Close() error { close(s.closed); return nil }

// TestPRX60_ReasonsOfTheSystemAndOfIDs: a broken stream and the last id end the link with the cause as it is spelled, and nothing can be
// asked after that.
func TestPRX60_ReasonsOfTheSystemAndOfIDs(t *testing.T) {
	for _, tc := range []struct {
		stream *failing
		newest uint64
		want   string
	}{
		{&failing{read: syscall.ECONNRESET}, 0, "decider: read error: connection reset by peer"},
		{&failing{read: io.EOF}, 0, "decider: decider closed the stream"},
		{&failing{write: syscall.ENOSPC}, 0, "decider: write error: no space left on device"},
		{&failing{write: syscall.EPIPE}, 0, "decider: decider closed the output stream"},
		{&failing{read: io.EOF, write: syscall.EPIPE, late: make(chan struct{})}, 0, "decider: decider closed the stream"},
		{&failing{}, maxInteger, "decider: request ids exhausted"},
	} {
		tc.stream.closed = make(chan struct{})
		l := newLink(tc.stream, newDiscard())
		if tc.newest > 0 {
			l.mu.Lock()
			l.book.newest = tc.newest
			l.mu.Unlock()
			if id, err := l.ask(&question{}, newWaiting()); err == nil || id != 0 {
				t.Errorf("%s: id %d", tc.want, id)
			}
		}
		await(t, l.dead)
		if got := l.err.Error(); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
		if id, err := l.ask(&question{}, newWaiting()); !errors.Is(err, errDead) || id != 0 {
			t.Errorf("%s: then id %d, %v", tc.want, id, err)
		}
		l.close()
	}
}

// TestPRX67_LiteralsOfTheHello: the literals of the two lists are what exempts an address that a name leads to, and what denies one; names
// and wildcards do neither.
func TestPRX67_LiteralsOfTheHello(t *testing.T) {
	for lists, tc := range map[string]struct {
		host   string
		passes bool
	}{
		`"allowedDomains":["u.test","127.0.0.1"],"deniedDomains":[]`:                  {"u.test", true},
		`"allowedDomains":["u.test"],"deniedDomains":[]`:                              {"u.test", false},
		`"allowedDomains":["u.test","127.0.0.2"],"deniedDomains":[]`:                  {"u.test", false},
		`"allowedDomains":["u.test","127.0.0.1"],"deniedDomains":["127.0.0.1"]`:       {"u.test", false},
		`"allowedDomains":["u.test","127.0.0.1:1"],"deniedDomains":[]`:                {"u.test", false},
		`"allowedDomains":["u.test","*.u.test","localhost"],"deniedDomains":[]`:       {"u.test", false},
		`"allowedDomains":["private.test","10.0.0.6"],"deniedDomains":[]`:             {"private.test", false},
		`"allowedDomains":["127.0.0.1"],"deniedDomains":[]`:                           {"127.0.0.1", true},
		`"allowedDomains":["u.test","127.0.0.1"],"deniedDomains":["127.0.0.2","::1"]`: {"u.test", true},
	} {
		r := start(t, `{"t":"hello","proto":1,`+lists+`}`)
		r.always(`"action":"allow"`)
		_, port, _ := strings.Cut(r.up.host, ":")
		target := tc.host + ":" + port
		c := r.dial()
		c.say("GET http://" + target + "/ HTTP/1.1\r\nHost: " + target + "\r\n\r\n")
		got := c.hears("GET")
		if tc.passes && got.status != 200 || !tc.passes && (got.status != 403 || got.header.Get("X-Deny-Reason") != "address_not_allowed" ||
			!strings.HasPrefix(got.body, "Connection to "+tc.host+" blocked: resolved to ")) {
			t.Errorf("%s: %s: %+v", lists, target, got)
		}
		if n := r.up.dialled(); (n == 1) != tc.passes {
			t.Errorf("%s: %d connections", lists, n)
		}
	}
}
