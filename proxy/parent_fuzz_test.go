package proxy

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// FuzzParent: a URL that is taken has one reading, one that is not taken is an error without its user information, and no
// noProxy list makes a literal bypass by the name of something else.
func FuzzParent(f *testing.F) {
	f.Add("http://u:p%40@p.test:1", "direct.test,10.1.0.0/16,exact.test:8080", "sub.direct.test")
	f.Add("https://u:p@q@[::1]", "*", "10.2.2.3")
	f.Add("p.test:3128", " .a.test , *.b.test,[::1]:80,10.0.0.0/99", "a.test")
	f.Add("u:secret@p test:1", "::ffff:1.2.3.4,1.2.3.4/32", "1.2.3.4")
	f.Add("socks5://u:secret@p.test:1", ",,%", "a")
	f.Fuzz(func(t *testing.T, url, noProxy, host string) {
		p, err := ParseParent(url, "", noProxy)
		if url == "" {
			return
		}
		if err != nil {
			if !errors.Is(err, ErrInvalidParent) {
				t.Errorf("%q: %v", url, err)
			}
			if strings.Contains(url, "://u:secret@") && strings.Count(url, "secret") == 1 && strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: the error holds the password: %v", url, err)
			}
			return
		}
		e := p.https
		if h, err := config.CanonicalHost(bracketed(e.host)); err != nil || h != e.host || e.port == 0 || e.socket != "" {
			t.Errorf("%q: %+v", url, e)
		}
		if e.auth != "" {
			raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(e.auth, "Basic "))
			if err != nil || !strings.Contains(string(raw), ":") || strings.ContainsAny(e.auth, "\r\n") {
				t.Errorf("%q: credentials %q", url, e.auth)
			}
		}
		h, err := config.CanonicalHost(host)
		if err != nil {
			return
		}
		direct := p.route(h, false) == nil
		switch {
		case h.Name == "localhost" && !direct:
			t.Errorf("localhost goes through the parent")
		case direct && noProxy == "" && h.Name != "localhost" && !(h.IsLiteral() && h.Addr.IsLoopback()):
			t.Errorf("%q bypasses an empty list", host)
		}
	})
}
