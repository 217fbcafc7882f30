package runtime

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/runtime/config"
)

// TestRequestFilter_LIB1_NET35: an embedder's filter sees the plain requests of commands, its refusals are recorded (case 17),
// and the settings that go with it count.
func TestRequestFilter_LIB1_NET35(t *testing.T) {
	filter := func(_ context.Context, r *proxy.FilterRequest) (proxy.FilterDecision, error) {
		switch r.Normalized {
		case "/ok", "/a":
			return proxy.FilterDecision{Action: proxy.FilterAllow}, nil
		case "/fails":
			return proxy.FilterDecision{Action: proxy.FilterAllow}, errors.New("no answer")
		}
		return proxy.FilterDecision{Reason: "not " + r.Method}, nil
	}
	const script = `get() { curl -s --path-as-is --max-time 50 -o /dev/null -w '%{http_code} ' "http://h.test/$1"; }
		get ok; get 'p?api_key=1'; get fails; get x/../a`
	for _, tt := range []struct {
		name, target, want string
		refused            int
	}{
		{"ambiguous targets are refused", "", "200 403 403 400", 3},
		{"and normalised on demand", config.TargetNormalize, "200 403 403 200", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWayOut(t, func(c *config.Config) {
				c.Network.AllowedDomains = []string{"h.test"}
				c.Network.AmbiguousRequestTarget = tt.target
			}, WithRequestFilter(filter))
			w.prints(script, tt.want)
			_, lines := w.got()
			if len(lines) != tt.refused {
				t.Fatalf("%d violations, want %d: %q", len(lines), tt.refused, lines)
			}
			want := []string{"deny http-request GET http://h.test/p?… (not GET)",
				"deny http-request GET http://h.test/fails (sandbox policy check failed: no answer)"}
			if diff := cmp.Diff(want, lines[:2]); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
