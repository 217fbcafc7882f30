package decider

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

func TestPRX35_Req(t *testing.T) {
	q, why := newQuestion(subject{
		method: "PURGE", host: "::1", port: 8080, hostHeader: "[::1]:8080", sni: "a.com", target: "/a/../b%2f?x=1?y\xe9",
		header: httphead.Header{
			{Name: "Host", Value: "[::1]:8080"}, {Name: "X-A", Value: "1"}, {Name: "Proxy-Connection", Value: "keep-alive"}, {Name: "x-a", Value: "2"},
			{Name: "X-L", Value: "\xe9\"\\\t"}, {Name: "__proto__", Value: ""}, {Name: "constructor", Value: "c"},
		},
	})
	if why != "" {
		t.Fatal(why)
	}
	want := `{"t":"req","id":7,"method":"PURGE","host":"::1","port":8080,"hostHeader":"[::1]:8080","sni":"a.com",` +
		`"path":"/a/../b%2f","query":"x=1?yé","headers":{"x-a":["1","2"],"proxy-connection":["keep-alive"],"x-l":["é\"\\\u0009"],` +
		`"__proto__":[""],"constructor":["c"]}}`
	frame := q.frame(7)
	if got := string(frame[lengthBytes:]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !json.Valid(frame[lengthBytes:]) || int(frame[2])<<8|int(frame[3]) != len(frame)-lengthBytes {
		t.Error("the frame is not one")
	}
	q, _ = newQuestion(subject{method: "GET", host: "a", port: 80, target: "/?"})
	if got, want := string(q.frame(1)[lengthBytes:]), `{"t":"req","id":1,"method":"GET","host":"a","port":80,"path":"/"}`; got != want {
		t.Errorf("PRX-35: optional fields are left out: %s", got)
	}
}

func TestPRX37_Limits(t *testing.T) {
	fields := func(n int) httphead.Header {
		var h httphead.Header
		for range n {
			h = append(h, httphead.Field{Name: "a", Value: ""})
		}
		return h
	}
	one := func(name, value string) httphead.Header { return httphead.Header{{Name: name, Value: value}} }
	for _, test := range []struct {
		name   string
		change func(*subject)
		want   tooMuch
	}{
		{"190 values", func(s *subject) { s.header = append(fields(190), httphead.Field{Name: "host", Value: "x"}) }, ""},
		{"case 24 191 values", func(s *subject) { s.header = fields(191) }, headersTooLarge},
		{"64 KiB", func(s *subject) { s.header = one("a", strings.Repeat("v", 65535)) }, ""},
		{"case 24 64 KiB and one", func(s *subject) { s.header = one("a", strings.Repeat("v", 65536)) }, headersTooLarge},
		{"names count once", func(s *subject) {
			s.header = append(one(strings.Repeat("n", 60000), ""), one(strings.ToUpper(strings.Repeat("n", 60000)), strings.Repeat("v", 5536))...)
		}, ""},
		{"bytes of UTF-8", func(s *subject) { s.header = one("a", strings.Repeat("\xe9", 32768)) }, headersTooLarge},
		{"path of 8 KiB", func(s *subject) { s.target = "/" + strings.Repeat("p", 8191) + "?" + strings.Repeat("q", 9000) }, ""},
		{"case 24 path", func(s *subject) { s.target = "/" + strings.Repeat("p", 8192) }, targetTooLarge},
		{"path in UTF-8", func(s *subject) { s.target = "/" + strings.Repeat("\xe9", 4096) }, targetTooLarge},
		{"Host", func(s *subject) { s.hostHeader = strings.Repeat("h", 8193) }, targetTooLarge},
		{"server name", func(s *subject) { s.sni = strings.Repeat("h", 8193) }, targetTooLarge},
		{"host", func(s *subject) { s.host = strings.Repeat("h", 8193) }, targetTooLarge},
		{"case 24 query", func(s *subject) { s.target = "/?" + strings.Repeat("q", 1<<20) }, frameTooLarge},
		{"case 25 C1", func(s *subject) { s.header = one("a", "\x85") }, badHeader},
		{"case 25 Latin-1", func(s *subject) { s.header = one("a", "\xe9\xa0") }, ""},
		{"tab", func(s *subject) { s.header = one("a", "b\tc") }, ""},
		{"DEL", func(s *subject) { s.header = one("a", "\x7f") }, badHeader},
		{"control", func(s *subject) { s.header = one("a", "\x01") }, badHeader},
		{"name", func(s *subject) { s.header = one("a b", "c") }, badHeader},
		{"no name", func(s *subject) { s.header = one("", "c") }, badHeader},
		{"method", func(s *subject) { s.method = "" }, badRequest},
		{"no host", func(s *subject) { s.host = "" }, badRequest},
		{"no path", func(s *subject) { s.target = "?a" }, badRequest},
		{"port", func(s *subject) { s.port = 0 }, badRequest},
	} {
		s := subject{method: "GET", host: "a", port: 80, target: "/"}
		test.change(&s)
		if _, got := newQuestion(s); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// The limit is that of the frame at the largest id, so that a request never fits by being early.
func TestPRX37_FrameAtTheLargestID(t *testing.T) {
	s := subject{method: "GET", host: "a", port: 80, target: "/?"}
	q, _ := newQuestion(s)
	room := maxFrame - (len(q.frame(maxInteger)) - lengthBytes) - len(`,"query":""`)
	s.target = "/?" + strings.Repeat("q", room)
	q, why := newQuestion(s)
	if why != "" {
		t.Fatal(why)
	}
	if got := len(q.frame(maxInteger)) - lengthBytes; got != maxFrame {
		t.Errorf("the longest frame has %d bytes", got)
	}
	s.target += "q"
	if _, why := newQuestion(s); why != frameTooLarge {
		t.Errorf("one byte more: %q", why)
	}
}
