package proxy

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// TestCase22_CRED20_CRED21_CRED25_CRED26_PlainPath: with the opt-in alone, real values go into plain requests: into fields and
// bodies, never into the target, and the filter sees fakes.
func TestCase22_CRED20_CRED21_CRED25_CRED26_PlainPath(t *testing.T) {
	store, fakes := masking(t, map[string]string{"TOKEN": "the-real-one"}, "127.0.0.1")
	fake, value := fakes["TOKEN"], "the-real-one"
	basic := func(s string) string { return base64.StdEncoding.EncodeToString([]byte("u:" + s)) }
	chunked := func(s string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(s), s) }
	for _, tc := range []struct {
		name, target, fields, body string
		out, outBody               string // the fields and the body that the server gets
	}{
		{"field", "/?t=" + fake, "A: x " + fake + "\r\n", "", "A: x " + value + "\r\n", ""},
		{"Basic", "/", "Authorization: Basic " + basic(fake) + "\r\n", "", "Authorization: Basic " + basic(value) + "\r\n", ""},
		{"hop by hop", "/", "Connection: A\r\nA: " + fake + "\r\n", "", "", ""},
		{"case 25", "/", fmt.Sprintf("Content-Length: %d\r\n", len(fake)+2), "a" + fake + "b", fmt.Sprintf("Content-Length: %d\r\n", len(value)+2), "a" + value + "b"},
		{"chunked", "/", "Transfer-Encoding: chunked\r\n", chunked("a" + fake), "Transfer-Encoding: chunked\r\n", "a" + value},
		{"encoded", "/", fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n", len(fake)), fake,
			fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n", len(fake)), fake},
		{"nothing in it", "/", "Content-Length: 2\r\n", "hi", "Content-Length: 2\r\n", "hi"},
		{"empty", "/", "Content-Length: 0\r\n", "", "Content-Length: 0\r\n", ""},
	} {
		for _, reads := range []int64{-1, 0, 3} {
			t.Run(fmt.Sprintf("%s, filter reads %d", tc.name, reads), func(t *testing.T) {
				var read string
				s := script(t, ok200)
				upstream, client := exchangeWith(t, s, "POST http://127.0.0.1:PORT"+tc.target+" HTTP/1.1\r\nHost: a\r\n"+tc.fields+auth+"Connection: close\r\n\r\n"+tc.body,
					filtered(Filtering{Filter: reading(reads, &read)}), func(o *Options) { o.Credentials, o.AllowPlaintextInject = store, true })
				head, body, _ := strings.Cut(upstream, "\r\n\r\n")
				want := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s", tc.target, s.port, tc.out)
				decoded, _ := unchunked(t, tc.out, body)
				if head+"\r\n" != want || decoded != tc.outBody || strings.Contains(read, value) {
					t.Errorf("upstream %.300q, %d bytes, client %q", head, len(body), client)
				}
			})
		}
	}
}

// TestCase25_CRED26_LongBodiesOfThePlainPath: a body of more than 1 MiB whose length changes goes out in chunks.
func TestCase25_CRED26_LongBodiesOfThePlainPath(t *testing.T) {
	store, fakes := masking(t, map[string]string{"TOKEN": "the-real-one"}, "127.0.0.1")
	type arrived struct{ head, body string }
	got := make(chan arrived, 1)
	port := serveEach(t, func(c *net.TCPConn) {
		br := bufio.NewReader(c)
		head, err := httphead.ReadHead(br, nil)
		if err != nil {
			return
		}
		body, err := io.ReadAll(httphead.NewChunkedReader(br))
		if err != nil {
			t.Error(err)
		}
		got <- arrived{string(head), string(body)}
		_, _ = io.WriteString(c, ok200)
	}).Port
	h := start(t, baseRules, func(o *Options) { o.Credentials, o.AllowPlaintextInject = store, true })
	p := h.dial()
	big := strings.Repeat("x", 5<<20)
	body := big + fakes["TOKEN"] + big
	p.send("PUT http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n%s", port, len(body), auth, body)
	p.want(ok200)
	if a := <-got; !strings.HasSuffix(a.head, "\r\nTransfer-Encoding: chunked\r\n\r\n") || strings.Contains(a.head, "Content-Length") || a.body != big+"the-real-one"+big {
		t.Errorf("%q, %d bytes", a.head, len(a.body))
	}
}

// TestCRED20_CRED21_PlainPathKeepsTheFake: without the opt-in, and elsewhere, the fake goes out, and the debug log says why.
func TestCRED20_CRED21_PlainPathKeepsTheFake(t *testing.T) {
	for _, tc := range []struct {
		name   string
		hosts  []string
		opt    bool
		method string
		said   string
	}{
		{"no opt-in", []string{"127.0.0.1"}, false, "TRACE", "plain HTTP"},
		{"another host", []string{"name.test"}, true, "TRACE", "injectHosts"},
	} {
		log := &logBuffer{}
		store, fakes := masking(t, map[string]string{"TOKEN": "the-real-one"}, tc.hosts...)
		s := script(t, ok200)
		upstream, _ := exchangeWith(t, s, tc.method+" http://127.0.0.1:PORT/ HTTP/1.0\r\nA: "+fakes["TOKEN"]+"\r\n"+auth+"\r\n",
			func(o *Options) { o.Credentials, o.AllowPlaintextInject, o.Logger = store, tc.opt, log.logger() })
		if said := log.String(); !strings.Contains(said, tc.said) || !strings.Contains(said, "fields=[A]") || strings.Contains(said, fakes["TOKEN"]) {
			t.Errorf("%s: the log: %q", tc.name, said)
		}
		if !strings.Contains(upstream, "A: "+fakes["TOKEN"]+"\r\n") {
			t.Errorf("%s: %q", tc.name, upstream)
		}
	}
}

// TestCRED24_REQ11_PlainPathRefusals: an echo, and a value that cannot be in a field, are refused and recorded.
func TestCRED24_REQ11_PlainPathRefusals(t *testing.T) {
	const value = "two\nlines"
	store, fakes := masking(t, map[string]string{"TOKEN": value}, "127.0.0.1")
	for method, reason := range map[string]string{"TRACE": "the TRACE method is not forwarded", "GET": reasonControl} {
		s := script(t, ok200)
		h := start(t, baseRules, func(o *Options) { o.Credentials, o.AllowPlaintextInject = store, true })
		p := h.dial()
		p.send("%s http://127.0.0.1:%d/?x HTTP/1.1\r\nHost: a\r\nA: %s\r\n%s\r\n", method, s.port, fakes["TOKEN"], auth)
		if got := p.rest(); !strings.HasSuffix(got, reason+"\n") || strings.Contains(got, value) {
			t.Errorf("%q", got)
		}
		h.wantLines(fmt.Sprintf("deny http-request %s http://127.0.0.1:%d/?… (%s)", method, s.port, reason))
		if len(s.got) != 0 {
			t.Errorf("%s: %q was forwarded", method, <-s.got)
		}
	}
}

// TestNET32_CRED26_PlainPathAsksForTheBody: a client that waits to be asked is, also where the body is collected first.
func TestNET32_CRED26_PlainPathAsksForTheBody(t *testing.T) {
	store, fakes := masking(t, map[string]string{"TOKEN": "real"}, "127.0.0.1")
	s := script(t, ok200, ok200)
	h := start(t, baseRules, func(o *Options) { o.Credentials, o.AllowPlaintextInject = store, true })
	p := h.dial()
	for range 2 {
		p.send("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n%s\r\n", s.port, len(fakes["TOKEN"]), auth)
		p.want("HTTP/1.1 100 Continue\r\n\r\n")
		p.send("%s", fakes["TOKEN"])
		p.want(ok200)
		if got := <-s.got; !strings.HasSuffix(got, "Content-Length: 4\r\n\r\nreal") {
			t.Errorf("%q", got)
		}
	}
}

// TestCRED26_PlainPathClientThatLeaves: half a body is not sent as a whole one, and nothing is dialled for it.
func TestCRED26_PlainPathClientThatLeaves(t *testing.T) {
	store, fakes := masking(t, map[string]string{"TOKEN": "real"}, "127.0.0.1")
	for _, framing := range []string{fmt.Sprintf("Content-Length: %d", 2*len(fakes["TOKEN"])), "Transfer-Encoding: chunked"} {
		s := script(t, ok200)
		asked := make(chan struct{})
		h := start(t, baseRules, func(o *Options) { o.Credentials, o.AllowPlaintextInject = store, true },
			filtered(Filtering{Filter: func(context.Context, *FilterRequest) (FilterDecision, error) {
				close(asked)
				return FilterDecision{Action: FilterAllow}, nil
			}}))
		p := h.dial()
		p.send("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n%s\r\n%s\r\n2f\r\n%s", s.port, framing, auth, fakes["TOKEN"])
		<-asked
		_ = p.CloseWrite()
		_, _ = io.ReadAll(p.br)
		if len(s.got) != 0 {
			t.Errorf("%s: %q", framing, <-s.got)
		}
	}
}
