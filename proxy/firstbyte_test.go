package proxy

import (
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
)

// TestNET22_FirstByte: the first byte alone tells the protocol, and both are served on one listener.
func TestNET22_FirstByte(t *testing.T) {
	for _, tc := range []struct{ name, sent, answer string }{
		{"SOCKS5", "\x05\x01\x03", "\x05\xff"},
		{"SOCKS4", "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", ""},
		{"SOCKS4a", "\x04\x01\x00\x50\x00\x00\x00\x01\x00a.test\x00", ""},
		{"HTTP", "CONNECT a.test:1 HTTP/1.1\r\n\r\n", denied407},
		{"TLS", "\x16\x03\x01\x00\x05hello\r\n\r\n", bad400},
		{"SOCKS6", "\x06\r\n\r\n", bad400},
		{"NUL", "\x00\r\n\r\n", bad400},
		{"nothing", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := start(t, baseRules, func(o *Options) {
				if tc.sent == "" {
					o.Limits.FirstByte = 100 * time.Millisecond
				}
			})
			p := h.dial()
			p.send("%s", tc.sent)
			if got := p.rest(); got != tc.answer {
				t.Errorf("\n got %q\nwant %q", got, tc.answer)
			}
			h.wantLines()
		})
	}
}

// TestNET23_SlowLoris: the time of a head is that of the whole head: a client that keeps sending a little is closed all the
// same, on its first request and on later ones, whatever part of the head it is in.
func TestNET23_SlowLoris(t *testing.T) {
	s := script(t, ok200, ok200)
	h := start(t, baseRules, func(o *Options) { o.Limits.Head, o.Limits.SOCKSHandshake = 300*time.Millisecond, 300*time.Millisecond })
	get := strings.ReplaceAll("GET http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: a\r\n"+auth+"\r\n", "PORT", itoa(s.port))
	for _, tc := range []struct{ name, first, answer, trickle string }{
		{"request line", "", "", "G"}, {"header lines", "GET http://a/ HTTP/1.1\r\n", "", "a: b\r\n"}, {"second request", get, ok200, "G"},
		{"SOCKS methods", "\x05\x7f", "", "\x02"}, {"SOCKS user", "\x05\x01\x02\x01\xff", "\x05\x02", "u"},
		{"SOCKS host", socksLogin("srt", testToken) + "\x05\x01\x00\x03\xff", socksAdmitted, "h"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := h.dial()
			p.send("%s", tc.first)
			p.want(tc.answer)
			ended := make(chan string)
			go func() {
				got, _ := io.ReadAll(p.br)
				ended <- string(got)
			}()
			for i := 0; ; i++ {
				if i == 1000 {
					t.Fatal("the client is still being served")
				}
				_, _ = p.Write([]byte(tc.trickle)) // fails once the server has closed
				select {
				case got := <-ended:
					if got != "" {
						t.Errorf("%q", got)
					}
					return
				case <-time.After(15 * time.Millisecond):
				}
			}
		})
	}
}

// TestNET29_Authority: Host and the URL in lines are made of the canonical host; the default port is left out.
func TestNET29_Authority(t *testing.T) {
	for _, tc := range []struct{ target, host, url, path string }{
		{"http://A.test./", "a.test", "http://a.test/", "/"},
		{"http://a.test:80/x", "a.test", "http://a.test/x", "/x"},
		{"http://a.test:443/x", "a.test:443", "http://a.test:443/x", "/x"},
		{"https://a.test:443/x", "a.test", "https://a.test/x", "/x"},
		{"https://a.test:80", "a.test:80", "https://a.test:80/", "/"},
		{"http://[::0001]/", "[::1]", "http://[::1]/", "/"},
		{"http://[::1]:8080/?#", "[::1]:8080", "http://[::1]:8080/?", "/?"},
		{"http://[::ffff:1.2.3.4]/", "1.2.3.4", "http://1.2.3.4/", "/"},
		{"http://0x7f.1/a%2F..#b", "127.0.0.1", "http://127.0.0.1/a%2F..", "/a%2F.."},
		{"http://u:p@b@a.test?q@c/", "a.test", "http://a.test/?q@c/", "/?q@c/"},
		{"http://a.test#@evil.test/", "a.test", "http://a.test/", "/"},
	} {
		target, ok := parseTarget("GET", tc.target)
		h, err := config.CanonicalHost(target.host)
		if !ok || err != nil || target.hostField(h) != tc.host || target.url(h) != tc.url || target.path != tc.path {
			t.Errorf("%s: %q, %q, %q, %v", tc.target, target.hostField(h), target.url(h), target.path, err)
		}
	}
	for _, s := range []string{
		"", "/", "*", "a.test", "a.test:80", "//a.test/", "http:/a.test", "http:a.test", "http:///x", "http://", "http://:80/", "http://@/", "http://a.test:/",
		"http://a.test:0/", "http://a.test:080/", "http://a.test:65536/", "http://a.test:+80/", "http://a.test:80:80/", "http://[::1/", "http://[::1]80/",
		`http://a.test\/`, `http://u\@a.test/`, "ws://a.test/", "ftp://a.test/", "file:///x", " http://a.test/", "httpx://a.test/",
	} {
		if target, ok := parseTarget("GET", s); ok {
			t.Errorf("%q: %+v", s, target)
		}
	}
}

// TestNET30_TheTokenStaysHere: no field that carries the credentials reaches an upstream server, nor does one that would
// name this proxy.
func TestNET30_TheTokenStaysHere(t *testing.T) {
	s := script(t, ok200)
	request := "POST http://srt:" + testToken + "@127.0.0.1:PORT/ HTTP/1.1\r\nHost: srt:" + testToken + "@a\r\nConnection: close, Proxy-Authorization\r\n" +
		"Proxy_Authorization: Basic " + testToken + "\r\nTransfer-Encoding: chunked\r\n" + auth + "\r\n0\r\nProxy-Authorization: " + testToken + "\r\nT: 1\r\n\r\n"
	upstream, _ := exchangeWith(t, s, request)
	want := strings.ReplaceAll("POST / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: 1\r\n\r\n", "PORT", itoa(s.port))
	if upstream != want {
		t.Errorf("upstream %q", upstream)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
