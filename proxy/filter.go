package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// Filtering is the part of [Options] about the request filter (NET-35 to NET-37, REQ-*). The zero value has no filter:
// requests to allowed hosts are then forwarded as spelled.
type Filtering struct {
	// Filter decides about each plain request to an allowed host, after every other check and before anything is dialled.
	// Nil: none.
	Filter RequestFilter
	// AllowPlaintextHeaderSet lets a decision set header fields on requests that came in cleartext, which all plain
	// requests do. Without it such a decision refuses the request (NET-37).
	AllowPlaintextHeaderSet bool
	// AmbiguousRequestTarget is what becomes of a target whose normalized path differs from the spelled one, if there is
	// a filter: config.TargetRefuse, also meant by "", config.TargetAsSpelled or config.TargetNormalize (NET-35).
	AmbiguousRequestTarget string
}

func (f *Filtering) validate() error {
	switch f.AmbiguousRequestTarget {
	case "", config.TargetRefuse, config.TargetAsSpelled, config.TargetNormalize:
		return nil
	}
	return fmt.Errorf("%w: AmbiguousRequestTarget must be %q, %q or %q", ErrInvalidOptions,
		config.TargetRefuse, config.TargetAsSpelled, config.TargetNormalize)
}

// RequestFilter decides about one request. It is called from many goroutines and has no time limit. ctx ends when the
// client leaves or the server closes, and the result is then dropped (REQ-12); nobody waits for it then, so a filter may call
// [Server.Close]. An error and a panic deny.
type RequestFilter func(ctx context.Context, r *FilterRequest) (FilterDecision, error)

// FilterRequest is what a filter is told. It belongs to the filter, which may keep or change it without effect.
type FilterRequest struct {
	Method string // as spelled
	// URL is the target with its canonical authority and the path and query that go out; never made of the Host field.
	URL string
	// Host is the canonical host, an IPv6 literal without brackets (NET-8).
	Host string
	Port uint16
	// RequestTarget is path and query as spelled, without fragment; "*" for OPTIONS of a whole server. Normalized is the
	// same without dot segments, backslashes and repeated leading slashes; Ambiguous tells that the two name different
	// paths (NET-35).
	RequestTarget, Normalized string
	Ambiguous                 bool
	// Header is the fields in the order and spelling of the client, Host and hop-by-hop ones included, the proxy
	// credentials left out.
	Header []HeaderField
	// Key is the attribution key that the client presented: a label of its own choosing (NET-21).
	Key string
}

// HeaderField is one header field.
type HeaderField struct{ Name, Value string }

// FilterAction is the verdict of a filter. The zero value denies.
type FilterAction uint8

// The actions.
const (
	FilterDeny FilterAction = iota
	FilterAllow
)

// FilterDecision is the answer of a filter. The zero value denies.
type FilterDecision struct {
	Action FilterAction
	// Reason and Status are for a denial: its text, "denied by sandbox policy" if empty, and its status, 403 unless it is
	// 400 to 599 (NET-37).
	Reason string
	Status int
	// RemoveHeaders and then SetHeaders are for an allow. A field that is set replaces every field of its name, whose
	// values follow one another as listed. Names are compared by stripResponseHeaders' rule ('-', '_' and '.' are one).
	// Fields that frame or route the message are neither set nor removed (REQ-17 to REQ-19).
	RemoveHeaders []string
	SetHeaders    []HeaderField
}

// The reasons of refusals by a filter, as in the chapters about the network and about TLS.
const (
	reasonFilter          = "denied by sandbox policy"
	reasonMalformedTarget = "malformed request-target"
	reasonEncodeTarget    = reasonMalformedTarget + ": percent-encode its bytes outside printable ASCII"
	reasonAmbiguousTarget = "ambiguous request-target: as spelled and normalized it names different paths (a dot segment, " +
		"leading slashes or \"\\\"); nothing was forwarded (network.ambiguousRequestTarget in the sandbox's configuration " +
		"is \"refuse\")"
	reasonHeaderSet = "the allow decision sets headers, and headers are not set on plain-HTTP requests unless plaintext " +
		"header sets are enabled; nothing was forwarded"
)

// askFilter asks the filter, if there is one, about a request that has passed every other check, and prepares what goes
// out. A client that leaves meanwhile sets e.gone.
func (c *client) askFilter(e *exchange) (answer, bool) {
	if c.filtering.Filter == nil {
		return answer{}, false
	}
	var d FilterDecision
	var err error
	c.watched(e, func(ctx context.Context) (gone error) {
		d, err, gone = callFilter(ctx, c.filtering.Filter, c.filterRequest(e))
		return gone
	})
	if e.gone {
		return answer{}, true
	}
	status, reason := 403, ""
	switch {
	case err != nil:
		reason = "sandbox policy check failed: " + err.Error()
	case d.Action == FilterDeny:
		if reason = d.Reason; reason == "" {
			reason = reasonFilter
		}
		if d.Status >= 400 && d.Status <= 599 {
			status = d.Status
		}
	default:
		if what := d.malformed(); what != "" {
			reason = "malformed filterRequest decision: " + what
		} else if len(d.SetHeaders) > 0 && !c.filtering.AllowPlaintextHeaderSet {
			reason = reasonHeaderSet
		}
	}
	if reason != "" {
		c.reportRequest(e, "", reason)
		return filterRefused(status, reason), true
	}
	d.edit(e.req)
	return answer{}, false
}

// callFilter asks the filter in a goroutine of its own: it may close the server, which waits for its clients, and one that does
// not heed its context outlives both. A panic of the filter is an error (REQ-16). gone is errClientGone when the context ended
// before there was an answer, which then counts for nothing.
func callFilter(ctx context.Context, filter RequestFilter, r *FilterRequest) (d FilterDecision, err, gone error) {
	type result struct {
		FilterDecision
		err error
	}
	answered := make(chan result, 1)
	go func() {
		a := result{err: errFilterExit}
		defer func() {
			if p := recover(); p != nil {
				a = result{err: fmt.Errorf("%v", p)}
			}
			answered <- a
		}()
		a.FilterDecision, a.err = filter(ctx, r)
	}()
	select {
	case a := <-answered:
		return a.FilterDecision, a.err, nil
	case <-ctx.Done():
		return FilterDecision{}, nil, errClientGone
	}
}

// errFilterExit is a filter that ended its goroutine.
var errFilterExit = errors.New("the filter did not return")

func (c *client) filterRequest(e *exchange) *FilterRequest {
	r := &FilterRequest{
		Method: e.req.Method, URL: e.target.url(e.host), Host: e.host.Name, Port: e.target.port,
		RequestTarget: e.spelled, Normalized: e.normalized, Ambiguous: e.ambiguous, Key: c.key,
	}
	for _, f := range e.req.Header {
		if !f.Is("Proxy-Authorization") {
			r.Header = append(r.Header, HeaderField(f))
		}
	}
	return r
}

// reportRequest records a request that was refused although its host is allowed (NET-70).
// The rule is the setting that is behind it, empty for the filter's own decision.
func (c *client) reportRequest(e *exchange, rule, reason string) {
	v := policy.Verdict{Rule: rule, Reason: reason}
	c.report(violation.HTTPRequest, violation.Request(e.req.Method, e.target.url(e.host)), v, c.key)
}

// malformed returns what is wrong with an allow decision, or "" (REQ-16).
func (d *FilterDecision) malformed() string {
	switch {
	case d.Action != FilterAllow:
		return "unknown action"
	case slices.ContainsFunc(d.RemoveHeaders, func(name string) bool { return !httphead.ValidName(name) }):
		return "removeHeaders holds an invalid header name"
	case slices.ContainsFunc(d.SetHeaders, func(f HeaderField) bool { return !httphead.ValidName(f.Name) }):
		return "setHeaders holds an invalid header name"
	case slices.ContainsFunc(d.SetHeaders, func(f HeaderField) bool { return !httphead.ValidValue(f.Value) }):
		return "setHeaders holds an invalid header value"
	}
	return ""
}

// fixedFields are the folded names that no decision changes (REQ-18): they say where the message goes and where it ends,
// or belong to this connection.
var fixedFields = [...]string{
	"host", "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization",
	"transfer-encoding", "te", "trailer", "upgrade", "content-length",
}

// edit applies an allow decision to the header: hop-by-hop fields go first, so that the client's Connection field cannot
// name one that the filter sets, then all removals, then all sets (REQ-17).
func (d *FilterDecision) edit(req *httphead.Request) {
	if len(d.RemoveHeaders)+len(d.SetHeaders) == 0 {
		return
	}
	remove := map[string]bool{}
	for _, name := range d.RemoveHeaders {
		remove[foldName(name)] = true
	}
	spelling := map[string]string{} // of each name that is set, by its folded form
	for _, f := range d.SetHeaders {
		folded := foldName(f.Name)
		remove[folded] = true
		if spelling[folded] == "" {
			spelling[folded] = f.Name
		}
	}
	for _, name := range fixedFields {
		delete(remove, name)
		delete(spelling, name)
	}
	var out httphead.Header
	endToEnd(req.Header, func(f httphead.Field) {
		if !remove[foldName(f.Name)] {
			out = append(out, f)
		}
	})
	for _, f := range firstsTogether(d.SetHeaders) {
		if name := spelling[foldName(f.Name)]; name != "" {
			out = append(out, httphead.Field{Name: name, Value: strings.Trim(f.Value, " \t")})
		}
	}
	req.Header = out
}

// firstsTogether puts the fields of one name behind the first of them.
func firstsTogether(fields []HeaderField) []HeaderField {
	var order []string
	byName := map[string][]HeaderField{}
	for _, f := range fields {
		folded := foldName(f.Name)
		if byName[folded] == nil {
			order = append(order, folded)
		}
		byName[folded] = append(byName[folded], f)
	}
	var out []HeaderField
	for _, folded := range order {
		out = append(out, byName[folded]...)
	}
	return out
}
