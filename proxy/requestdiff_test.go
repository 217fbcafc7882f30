package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
)

// The parts that requests are drawn from.
var (
	drawnMethods = []string{"GET", "POST", "TRACE", "TRACK", "OPTIONS", "trace", "M-X"}
	drawnTargets = []string{"/", "/a", "..", "%2e", "%2E.", "\\", "//", ";x", "%2F", "?q", "'", "{x}", "#f", "%zz", "."}
	drawnFields  = []string{
		"Host: api.example.com", "Host: evil", "host: API.example.com:80", "A: 1", "a: 2", "X_Api.Key: k", "Accept: x", "Connection: A",
		"Upgrade: x", "Content_Length: 9", "Cookie: c",
	}
	drawnModes = []string{"", config.TargetRefuse, config.TargetAsSpelled, config.TargetNormalize}
)

// drawn returns n parts of a list.
func drawn(r *rand.Rand, list []string, n int) []string {
	var out []string
	for range n {
		out = append(out, list[r.IntN(len(list))])
	}
	return out
}

// fickle decides by what a request is like, in a way that does not depend on the path that it came by.
func fickle(_ context.Context, r *FilterRequest) (FilterDecision, error) {
	d := FilterDecision{Action: FilterAllow}
	switch n := len(r.Normalized) + len(r.RawHeader); {
	case n%7 == 0:
		return FilterDecision{Reason: r.Normalized, Status: 400 + n}, nil
	case n%11 == 0:
		return d, errors.New(r.RequestTarget)
	case n%5 == 0:
		d.RemoveHeaders, d.SetHeaders = []string{"x-api-key"}, []HeaderField{{"A", r.RequestTarget}, {"Host", "x"}, {"B", "c"}}
	case n%13 == 0:
		d.SetHeaders = []HeaderField{{"A B", ""}}
	}
	return d, nil
}

// TestREQ2_BothPathsDecideAlike: 1,000 requests to one target get the same decision, and go out in the same form, in a
// tunnel and in cleartext. Only what differs by the rules is left out: port and scheme of the target, and the first lines of
// TLS-33.
func TestREQ2_BothPathsDecideAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1000))
	refusals, allowed := map[string]int{}, 0
	for range 1000 {
		mode := drawnModes[r.IntN(len(drawnModes))]
		o := Options{RequireHostMatch: r.IntN(2) == 0, Filtering: Filtering{AmbiguousRequestTarget: mode, AllowPlaintextHeaderSet: true}}
		if r.IntN(4) > 0 {
			o.Filter = fickle
		}
		method, lines := drawn(r, drawnMethods, 1)[0], drawn(r, drawnFields, r.IntN(6))
		origin := "/" + strings.Join(drawn(r, drawnTargets, r.IntN(5)), "")
		j := judging(t, o)
		judge := func(q *request) (string, *request) {
			a, refused := j.judgeRequest(t.Context(), q)
			if refused {
				return a.status + " " + a.mark + " " + a.body + strings.Join(j.taken(), "\n"), nil
			}
			return "", q
		}
		in := inTunnel(t, method, origin, lines...)
		in.port = 80
		plain := inCleartext(t, method, "http://api.example.com"+origin, lines...)
		wants, out := judge(in)
		got, outPlain := judge(plain)
		// The tunnel's default port is 443, so that its URL names port 80, and a Host field has to.
		wants = strings.ReplaceAll(wants, "https://api.example.com:80", "http://api.example.com")
		wants = strings.ReplaceAll(wants, "https://api.example.com", "http://api.example.com")
		if got != wants && !hostDecides(o, lines) {
			t.Fatalf("%s %q %q in mode %q:\n tunnel %q\n plain  %q", method, origin, lines, mode, wants, got)
		}
		if out == nil || outPlain == nil {
			refusals[strings.SplitN(wants, " ", 2)[0]]++
			continue
		}
		allowed++
		if what := goesOutAlike(out, outPlain); what != "" {
			t.Fatalf("%s %q %q in mode %q: %s", method, origin, lines, mode, what)
		}
	}
	for _, status := range []string{"400", "403", "405", "421"} {
		if refusals[status] < 10 {
			t.Errorf("%d refusals with %s", refusals[status], status)
		}
	}
	if allowed < 100 {
		t.Errorf("%d were allowed", allowed)
	}
}

// hostDecides reports whether a Host field without a port decides, whose meaning depends on the scheme (REQ-10).
func hostDecides(o Options, lines []string) bool {
	return o.RequireHostMatch && slices.Contains(lines, "Host: api.example.com")
}

// goesOutAlike compares what goes out, but for the Host field, which the plain path writes last.
func goesOutAlike(tunnel, plain *request) string {
	if tunnel.path != plain.path || tunnel.ambiguous != plain.ambiguous || tunnel.normalized != plain.normalized {
		return fmt.Sprintf("%q and %q", tunnel.path, plain.path)
	}
	var sides [2][]HeaderField
	for i, r := range []*request{tunnel, plain} {
		endToEnd(r.header, func(f httphead.Field) { // fields that are gone already stay gone
			if !f.Is("Host") {
				sides[i] = append(sides[i], HeaderField(f))
			}
		})
	}
	if !reflect.DeepEqual(sides[0], sides[1]) {
		return fmt.Sprintf("%q and %q", sides[0], sides[1])
	}
	return ""
}

// FuzzTargetInTunnel: whatever the target of a request in a tunnel, what goes out is a path of that target's server.
func FuzzTargetInTunnel(f *testing.F) {
	for _, row := range targetRows {
		f.Add("GET", row.target)
	}
	f.Add("OPTIONS", "*")
	f.Add("OPTIONS", "https://h")
	j := judging(f, Options{})
	f.Fuzz(func(t *testing.T, method, target string) {
		if method == "TRACE" || method == "TRACK" {
			return
		}
		r := inTunnel(t, method, target, "Host: x")
		a, refused := j.judgeRequest(t.Context(), r)
		if refused {
			if a.status != "400 Bad Request" || len(j.taken()) != 1 {
				t.Errorf("%+v", a)
			}
			return
		}
		outside := func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '#' }
		if r.path != "*" && !strings.HasPrefix(r.path, "/") || r.path == "*" && method != "OPTIONS" || strings.IndexFunc(r.path, outside) >= 0 {
			t.Errorf("%s %q goes out as %q", method, target, r.path)
		}
		if spelled, _, _ := strings.Cut(target, "#"); strings.HasPrefix(target, "/") && r.path != spelled {
			t.Errorf("%q goes out as %q", target, r.path)
		}
	})
}
