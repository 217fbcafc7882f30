package runtime

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/runtime/config"
)

// REQ-1: what a session filters by is fixed when it starts: an update says that it does not change it, and does not.
func TestFilteringIsFixed_REQ1(t *testing.T) {
	var asked atomic.Int32
	filter := func(context.Context, *proxy.FilterRequest) (proxy.FilterDecision, error) {
		asked.Add(1)
		return proxy.FilterDecision{Action: proxy.FilterAllow, SetHeaders: []proxy.HeaderField{{Name: "A", Value: "b"}}}, nil
	}
	w := newWayOut(t, func(c *config.Config) {
		c.Network.AllowedDomains = []string{"h.test"}
	}, WithRequestFilter(filter))
	const script = `get() { curl -s --path-as-is --max-time 50 -o /dev/null -w '%{http_code} ' "$@"; }
		get http://h.test/x/../a; get -H 'Host: evil.test' http://h.test/a`
	w.prints(script, "400 403") // the second sets a header in cleartext
	next := w.Config()
	n := &next.Network
	n.AllowPlaintextHeaderSet, n.RequireHostMatch, n.RefuseOpaqueTunnels = true, true, true
	n.StripResponseHeaders, n.AmbiguousRequestTarget = []string{"x"}, config.TargetAsSpelled
	notLive, err := w.Update(t.Context(), next)
	succeed(t, err)
	for _, key := range []string{"allowPlaintextHeaderSet", "requireHostMatch", "refuseOpaqueTunnels", "stripResponseHeaders", "ambiguousRequestTarget"} {
		if !slices.Contains(notLive, "network."+key) {
			t.Errorf("%s: nothing is said of it: %q", key, notLive)
		}
	}
	w.prints(script, "400 403")
	if n := asked.Load(); n != 2 {
		t.Errorf("the filter was asked %d times", n)
	}
}

// REQ-1: host match, stripped headers and opaque tunnels need no filter.
func TestFilteringWithoutAFilter_REQ1(t *testing.T) {
	w := newWayOut(t, func(c *config.Config) {
		c.Network.AllowedDomains = []string{"h.test"}
		c.Network.RequireHostMatch, c.Network.RefuseOpaqueTunnels = true, true
		c.Network.AmbiguousRequestTarget = config.TargetRefuse
	})
	w.prints(`get() { curl -s --path-as-is --max-time 50 -o /dev/null -w '%{http_code} ' "$@"; }
		get http://h.test/x/../a; get -H 'Host: evil.test' http://h.test/a; curl -s -o /dev/null -w '%{http_connect} ' https://h.test/ || true`, "200 421 403")
}

// CRED-37: a session that began without credentials puts in those of an update, and the hosts are those of the later launch.
func TestMasksOfAnUpdateAreInjected_CRED37(t *testing.T) {
	s := newSession(t, func(c *config.Config) {
		masking("TOKEN")(c)
		c.Credentials = nil
	})
	host, err := config.CanonicalHost("a.example")
	succeed(t, err)
	elsewhere, err := config.CanonicalHost("b.example")
	succeed(t, err)
	if got := shown(t, s, nil, "$TOKEN"); got != "planted" || s.secrets.At(host) != nil {
		t.Errorf("without credentials: %q", got)
	}
	next := s.Config()
	next.Credentials = maskOf("TOKEN", "a.example")
	next.Credentials.AllowPlaintextInject = true
	notLive, err := s.Update(t.Context(), next)
	if succeed(t, err); !slices.Contains(notLive, "credentials.allowPlaintextInject") {
		t.Errorf("not live: %q", notLive)
	}
	if s.secrets.At(host) != nil {
		t.Error("something can be put in before the next launch")
	}
	if got := shown(t, s, nil, "$TOKEN"); !strings.HasPrefix(got, "fake_value_") {
		t.Errorf("after the update: %q", got)
	}
	if s.secrets.At(host) == nil || s.secrets.At(elsewhere) != nil {
		t.Errorf("put in at a.example: %v, elsewhere: %v", s.secrets.At(host) != nil, s.secrets.At(elsewhere) != nil)
	}
}

// TLS-4: what Explain says of an external proxy.
func TestExplainExternalProxy_TLS4(t *testing.T) {
	for port, want := range map[int]string{0: "TLS ended by", 1: "is not ended by srt beside httpProxyPort"} {
		s := newSession(t, func(c *config.Config) {
			masking("TOKEN")(c)
			c.Network.HTTPProxyPort = port
		})
		e, err := s.Explain(t.Context())
		succeed(t, err)
		var text strings.Builder
		succeed(t, e.WriteText(&text))
		if e.Network.TLS.External != (port != 0) || !strings.Contains(text.String(), want) || !strings.Contains(text.String(), s.CA().Bundle) {
			t.Errorf("port %d: %+v\n%s", port, e.Network.TLS, text.String())
		}
	}
}

// TLS-12: what commands are told to trust is written once: every command of a session has the same file, and it does not change.
func TestBundleIsWrittenOnce_TLS12(t *testing.T) {
	s := newSession(t, masking("TOKEN"))
	see := func() (string, os.FileInfo) {
		path := shown(t, s, nil, "$SSL_CERT_FILE")
		info, err := os.Stat(path)
		succeed(t, err)
		return path, info
	}
	path, first := see()
	if path != s.CA().Bundle {
		t.Errorf("a command has %s, the getter %s", path, s.CA().Bundle)
	}
	next := s.Config()
	next.Network.TLSTerminate.ExcludeDomains = []string{"b.example"}
	next.Network.TLSTerminate.ExtraCACertPaths = []string{path}
	_, err := s.Update(t.Context(), next)
	succeed(t, err)
	if again, info := see(); again != path || !os.SameFile(first, info) || !info.ModTime().Equal(first.ModTime()) || info.Size() != first.Size() {
		t.Errorf("%s, then %s: %v, %v", path, again, first, info)
	}
}
