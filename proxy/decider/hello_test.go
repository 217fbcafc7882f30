package decider

import (
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

func helloOf(t *testing.T, frame string) *hosts {
	t.Helper()
	v, reason := parseObject([]byte(frame))
	if reason != "" {
		t.Fatalf("%s: %s", frame, reason)
	}
	return parseHello(v)
}

func TestPRX32_Hello(t *testing.T) {
	for frame, want := range map[string]bool{
		`{"t":"hello","proto":1,"allowedDomains":[],"deniedDomains":[]}`:                  true,
		`{"deniedDomains":["a.b"],"allowedDomains":["a.b"],"proto":1.0,"\u0074":"hello"}`: true,
		`{"t":"hello","proto":2,"allowedDomains":[],"deniedDomains":[]}`:                  false,
		`{"t":"hello","proto":"1","allowedDomains":[],"deniedDomains":[]}`:                false,
		`{"t":"Hello","proto":1,"allowedDomains":[],"deniedDomains":[]}`:                  false,
		`{"T":"hello","proto":1,"allowedDomains":[],"deniedDomains":[]}`:                  false,
		`{"t":"hello","proto":1,"allowedDomains":[]}`:                                     false,
		`{"t":"hello","proto":1,"deniedDomains":[]}`:                                      false,
		`{"t":"hello","allowedDomains":[],"deniedDomains":[]}`:                            false,
		`{"t":"hello","proto":1,"allowedDomains":[],"deniedDomains":[],"x":1}`:            false,
		`{"t":"hello","proto":1,"allowedDomains":{},"deniedDomains":[]}`:                  false,
		`{"t":"hello","proto":1,"allowedDomains":"a.b","deniedDomains":[]}`:               false,
		`{"t":"hello","proto":1,"allowedDomains":[1],"deniedDomains":[]}`:                 false,
		`{"t":"hello","proto":1,"allowedDomains":["a.b","a.b"],"deniedDomains":[]}`:       false,
		`{"t":"hello","proto":1,"allowedDomains":["a.b","\u0061.b"],"deniedDomains":[]}`:  false,
		`{"t":"hello","proto":1,"allowedDomains":["a.b","a.b:80"],"deniedDomains":["x"]}`: true,
		`{"t":"verdict","id":1,"action":"allow"}`:                                         false,
		`{"t":"hello","proto":1,"allowedDomains":[true],"deniedDomains":[]}`:              false,
		`{"t":true,"proto":1,"allowedDomains":[],"deniedDomains":[]}`:                     false,
	} {
		if got := helloOf(t, frame) != nil; got != want {
			t.Errorf("%s: %v", frame, got)
		}
	}
}

func TestPRX33_Entries(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := strings.Repeat(label+".", 3) + strings.Repeat("b", 61)
	for entry, want := range map[string]bool{
		"localhost": true, "*.a.com": true, "1.2.3.4": true, "1.2.3.4:80": true, "[::1]:443": true, "[::1]": true, "::1": true,
		"::1:443": true, "a.com": true, "a.com:65535": true, "xn--mnchen-3ya.de": true, "1a.2b.com": true, "a": true, "a-b.c": true,
		label + ".a": true, long: true, "*." + long: true, "*." + long + "b": false, "::ffff:1.2.3.4": true, "0-1.com": true, "*.a.com:8443": true,

		"": false, "*": false, "*:80": false, "*.com": false, "*.": false, "*.1.2.3.4": false, "*.[::1]": false, "a.*": false, "*a.b": false,
		"A.com": false, "a.com.": false, "a_b.com": false, "a.com:0": false, "a.com:": false, "a.com:080": false, "a.com:65536": false,
		"a.com:+1": false, "a.com:80:80": false, "a.1": false, "1.2": false, "1.2.3": false, "1.2.3.4.5": false, "0x7f.1": false, "256.1.1.1": false,
		"01.2.3.4": false, "-a.com": false, "a-.com": false, ".a": false, "a..b": false, "http://a.com": false, "a.com/": false, "u@a.com": false,
		"[1.2.3.4]": false, "[::1": false, "[::1]80": false, "[::1]:": false, "::1]": false, "fe80::1%eth0": false, "[fe80::1%25eth0]": false,
		label + "a.b": false, long + "c": false, "mün.de": false, " a.com": false, "a.com ": false, "a b.com": false, "[]": false, "[]:80": false, ":80": false,
	} {
		if len(long) != 253 {
			t.Fatalf("the long name has %d bytes", len(long))
		}
		if _, got := parseEntry(entry); got != want {
			t.Errorf("%q: %v", entry, got)
		}
	}
}

func TestPRX22_Lists(t *testing.T) {
	h := helloOf(t, `{"t":"hello","proto":1,
		"allowedDomains":["a.com","*.b.com","c.com:8443","1.2.3.4:80","::1","[::2]:443","*.d.com:80","localhost","::ffff:9.9.9.9"],
		"deniedDomains":["x.b.com","*.y.b.com","a.com:22","*.zone.b.com:443"]}`)
	for _, test := range []struct {
		host string
		port uint16
		want bool
	}{
		{"a.com", 443, true}, {"A.COM.", 80, true}, {"a.com", 22, false}, {"www.a.com", 443, false},
		{"b.com", 443, false}, {"q.b.com", 443, true}, {"p.q.b.com", 1, true}, {"x.b.com", 443, false}, {"w.x.b.com", 443, true},
		{"y.b.com", 443, true}, {"w.y.b.com", 443, false}, {"zone.b.com", 443, true}, {"q.zone.b.com", 443, false}, {"q.zone.b.com", 80, true},
		{"c.com", 8443, true}, {"c.com", 443, false},
		{"1.2.3.4", 80, true}, {"0x1020304", 80, true}, {"1.2.772", 80, true}, {"::ffff:1.2.3.4", 80, true}, {"1.2.3.4", 443, false},
		{"::1", 1, true}, {"[0:0::1]", 1, true}, {"::2", 443, true}, {"::2", 80, false}, {"9.9.9.9", 5, true},
		{"q.d.com", 80, true}, {"q.d.com", 443, false}, {"d.com", 80, false}, {"localhost", 3000, true}, {"x.localhost", 3000, false},
	} {
		host, err := config.CanonicalHost(test.host)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.allows(host, test.port); got != test.want {
			t.Errorf("%s:%d: %v", test.host, test.port, got)
		}
	}
}
