package proxy

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
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

// RequestFilter decides about one request, in cleartext or in a tunnel whose TLS is terminated. It is called once for each, from
// many goroutines, and has no time limit. ctx ends when the client leaves or the server closes, and the result is then dropped
// (REQ-12); nobody waits for it then, so a filter may call [Server.Close]. An error and a panic deny.
type RequestFilter func(ctx context.Context, r *FilterRequest) (FilterDecision, error)

// FilterRequest is what a filter is told (REQ-13). It belongs to the filter, which may keep or change it without effect. What
// comes from the client, fields, body and Key included, is its own choice; masked credentials show as their sentinels, never
// as their values.
type FilterRequest struct {
	Method string // as spelled
	// URL is the target with its canonical authority and the path and query that go out; never made of the Host field.
	URL string
	// Scheme is "https" for a request in a terminated tunnel and "http" for one that came in cleartext, to an https URL too.
	Scheme string
	// Host is the canonical host that the request goes to, an IPv6 literal without brackets (NET-8).
	Host string
	Port uint16
	// SNI is the server name of the client's TLS handshake in lower case: empty outside a tunnel, and for none or one that is
	// no plain host name.
	SNI string
	// RequestTarget is path and query as spelled, without fragment; "*" for OPTIONS of a whole server. Normalized is the
	// same without dot segments, backslashes and repeated leading slashes; Ambiguous tells that the two name different
	// paths (NET-35).
	RequestTarget, Normalized string
	Ambiguous                 bool
	// Header is the fields that count, in the order and spelling of the client, Host and hop-by-hop ones included, the proxy
	// credentials left out: in a tunnel the first line alone of fields such as Authorization and Content-Type (TLS-33).
	Header []HeaderField
	// RawHeader is Header with the lines that do not count.
	RawHeader []HeaderField
	// Body reads the body that the request declares, whatever its method; nil: it declares none. What is read is kept and
	// forwarded first, and what is not read is not kept. Reading waits for the client, and asks it for the body where it waits
	// to be asked. After 64 MiB it fails with [ErrBodyLimit], once the filter has returned with [ErrBodyClosed], and with other
	// errors if the body is malformed or the client leaves. It may be used from any goroutine.
	Body io.Reader
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
	// OnResponse is called, for an allow, with the final response of the server just before its head goes to the client: once,
	// and the client waits. header is a copy of its fields without hop-by-hop ones, and with those that stripResponseHeaders
	// takes out. It changes nothing, a panic is logged, and an answer of srt's own is not shown to it (REQ-20). Nil: nobody.
	OnResponse func(status int, header []HeaderField)
}

// The reasons of refusals by a filter, as in the chapters about the network and about TLS.
const (
	reasonFilter          = "denied by sandbox policy"
	reasonMalformedTarget = "malformed request-target"
	reasonEncodeTarget    = reasonMalformedTarget + ": percent-encode its bytes outside printable ASCII"
	reasonAmbiguousTarget = "ambiguous request-target: as spelled and normalized it names different paths (a dot segment, " +
		"leading slashes or \"\\\"); nothing was forwarded (network.ambiguousRequestTarget in the sandbox's configuration " +
		"is \"refuse\")"
	reasonAmbiguousRules = "ambiguous request-target: as spelled and normalized it names different paths (a dot segment, " +
		"leading slashes or \"\\\"), and network.requestRules is about the paths of this host; nothing was forwarded"
	reasonHeaderSet = "the allow decision sets headers, and headers are not set on plain-HTTP requests unless plaintext " +
		"header sets are enabled; nothing was forwarded"
)

// askFilter asks the filter, if there is one, about a request that has passed every other check, and prepares what goes
// out. It fails only with errClientGone, if ctx ended before there was an answer, which then counts for nothing (REQ-12).
func (s *Server) askFilter(ctx context.Context, r *request) (refusal, error) {
	if s.filtering.Filter == nil {
		s.edit(r, nil)
		return refusal{}, nil
	}
	d, failed, err := callFilter(ctx, s.filtering.Filter, r, s.filterRequest(r))
	if err != nil {
		return refusal{}, err
	}
	f := refusal{status: 403}
	switch {
	case failed != "":
		f.reason = "sandbox policy check failed: " + failed
	case d.Action == FilterDeny:
		if f.reason = d.Reason; f.reason == "" {
			f.reason = reasonFilter
		}
		if d.Status >= 400 && d.Status <= 599 {
			f.status = d.Status
		}
	default:
		if what := d.malformed(); what != "" {
			f.reason = "malformed filterRequest decision: " + what
		} else if len(d.SetHeaders) > 0 && r.scheme == "http" && !s.filtering.AllowPlaintextHeaderSet {
			f.reason = reasonHeaderSet
		}
	}
	if f.reason != "" {
		return f, nil
	}
	s.edit(r, &d)
	if d.OnResponse != nil {
		r.observe = s.showing(d.OnResponse)
	}
	return refusal{}, nil
}

// callFilter asks the filter in a goroutine of its own: it may close the server, which waits for its clients, and one that does
// not heed its context outlives both. Meanwhile it reads the body for the filter. An error or a panic of the filter is a text,
// failed (REQ-16). err is errClientGone when the context ended.
func callFilter(ctx context.Context, filter RequestFilter, r *request, told *FilterRequest) (d FilterDecision, failed string, err error) {
	type result struct {
		FilterDecision
		failed string
	}
	answered := make(chan result, 1)
	var reads chan bodyRead
	if r.body != nil {
		body := &filterBody{reads: make(chan bodyRead), closed: make(chan struct{})}
		defer close(body.closed)
		reads, told.Body = body.reads, body
	}
	go func() {
		a := result{failed: "the filter did not return"} // it may end its goroutine
		defer func() {
			if p := recover(); p != nil {
				a = result{failed: printed(p)}
			}
			answered <- a
		}()
		d, err := filter(ctx, told)
		if err != nil {
			a = result{failed: printed(err)}
			return
		}
		// The lists are the filter's own, which may go on using them.
		d.RemoveHeaders, d.SetHeaders = slices.Clone(d.RemoveHeaders), slices.Clone(d.SetHeaders)
		a = result{FilterDecision: d}
	}()
	for {
		select {
		case a := <-answered:
			if ctx.Err() != nil {
				return FilterDecision{}, "", errClientGone
			}
			return a.FilterDecision, a.failed, nil
		case read := <-reads:
			n, err := r.body.Read(read.into)
			read.done <- bodyResult{n, err}
		case <-ctx.Done():
			return FilterDecision{}, "", errClientGone
		}
	}
}

// printed is the text of an error or of what a filter panicked with, even of one whose method panics. It is never empty.
func printed(v any) string {
	if text := fmt.Sprint(v); text != "" {
		return text
	}
	return "the filter failed without a reason"
}

func (s *Server) filterRequest(r *request) *FilterRequest {
	told := &FilterRequest{
		Method: r.method, URL: r.at().url(r.host), Scheme: r.scheme, Host: r.host.Name, Port: r.port,
		RequestTarget: r.spelled, Normalized: r.normalized, Ambiguous: r.ambiguous, Key: s.keyOf(asking{key: r.key}),
	}
	if !r.sniUnreadable {
		told.SNI = r.sni
	}
	var seen firstLines
	for _, f := range r.header {
		if f.Is("Proxy-Authorization") {
			continue
		}
		told.RawHeader = append(told.RawHeader, HeaderField(f))
		if !r.tunnel || seen.counts(f) {
			told.Header = append(told.Header, HeaderField(f))
		}
	}
	return told
}

// observed shows the final response to a request to whom the filter named, if there is anyone: as it came, but for hop-by-hop
// fields (REQ-20).
func (s *Server) observed(r *request, status int, h httphead.Header) {
	if r.observe == nil {
		return
	}
	var shown []HeaderField
	endToEnd(h, func(f httphead.Field) { shown = append(shown, HeaderField(f)) })
	r.observe(status, shown)
}

// showing is OnResponse for one response. The function has a goroutine of its own, and is waited for: a panic in it is logged,
// and one that closes the server, or ends its goroutine, holds up nothing for ever (REQ-20).
func (s *Server) showing(on func(int, []HeaderField)) func(int, []HeaderField) {
	return func(status int, header []HeaderField) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() {
				if p := recover(); p != nil {
					s.log.Warn("proxy: OnResponse of the request filter panicked", "panic", fmt.Sprint(p))
				}
			}()
			on(status, header)
		}()
		select {
		case <-done:
		case <-s.ctx.Done():
		}
	}
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

// edit makes r.header what goes out, with the edits of an allow decision: hop-by-hop fields go first, so that the client's
// Connection field cannot name one that the filter sets, then all removals, then all sets (REQ-17). On the plain path, where the
// fields that are not forwarded are left out when the head is written, nothing is done without edits or credentials to be put
// into what is left.
func (s *Server) edit(r *request, d *FilterDecision) {
	edits := d != nil && len(d.RemoveHeaders)+len(d.SetHeaders) > 0
	if !r.tunnel && !edits && !s.injects(r) {
		return
	}
	var remove map[string]bool
	var spelling map[string]string
	if edits {
		remove, spelling = d.edited()
	}
	out := make(httphead.Header, 0, len(r.header)+1)
	r.forwarded(func(f httphead.Field) {
		if !edits || !remove[httphead.Fold(f.Name)] {
			out = append(out, f)
		}
	})
	if edits {
		for _, f := range firstsTogether(d.SetHeaders) {
			if name := spelling[httphead.Fold(f.Name)]; name != "" {
				out = append(out, httphead.Field{Name: name, Value: strings.Trim(f.Value, " \t")})
			}
		}
	}
	r.header = out
}

// edited returns the folded names of the fields that go, and the spelling of each name that is set by its folded form.
func (d *FilterDecision) edited() (remove map[string]bool, spelling map[string]string) {
	remove, spelling = map[string]bool{}, map[string]string{}
	for _, name := range d.RemoveHeaders {
		remove[httphead.Fold(name)] = true
	}
	for _, f := range d.SetHeaders {
		folded := httphead.Fold(f.Name)
		remove[folded] = true
		if spelling[folded] == "" {
			spelling[folded] = f.Name
		}
	}
	for _, name := range fixedFields {
		delete(remove, name)
		delete(spelling, name)
	}
	return remove, spelling
}

// firstsTogether puts the fields of one name behind the first of them.
func firstsTogether(fields []HeaderField) []HeaderField {
	var order []string
	byName := map[string][]HeaderField{}
	for _, f := range fields {
		folded := httphead.Fold(f.Name)
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
