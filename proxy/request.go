package proxy

import (
	"context"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// bodyReader is the declared body of a request as the filter reads it, before the request goes out. What was read is kept
// by its maker and forwarded first. It is used by the goroutine that judges the request alone.
type bodyReader interface {
	Read(p []byte) (int, error)
}

// request is one request to an allowed destination on its way out, whichever path it came by. Whoever reads it from a
// connection fills it in, and [Server.judgeRequest] completes it.
type request struct {
	method, target string // as spelled in the request line
	minor          int    // the minor version of HTTP
	// header is the fields as received. Once the request is allowed it is what goes out: for a tunnel without hop-by-hop
	// fields and repeats that do not count, and with the Host field of the target (TLS-32, TLS-33), but with Content-Length,
	// which whoever frames the message replaces; on the plain path only if fields were edited.
	header httphead.Header
	host   config.Host
	port   uint16
	scheme string // "https" in a tunnel, "http" for all that came in cleartext (REQ-13)

	tunnel        bool
	sni           string // lower case; empty if there was none
	sniUnreadable bool

	absolute requestTarget // on the plain path the target taken apart; a tunnel leaves it unset
	body     bodyReader    // nil: none is declared
	key      string        // attribution
	pid      int           // of the thread that connected, 0 if unknown
	rules    *Rules        // in force for this request

	// The results, if the request is allowed.
	path    string                                 // the target that goes out, in origin form or "*"
	observe func(status int, header []HeaderField) // what the final response is shown to; nil: nobody asked

	// What a filter is told about the target.
	spelled, normalized string
	ambiguous           bool
}

// refusal is why a request is not forwarded: the answer of REQ-3 and the line about it. The zero value refuses nothing.
type refusal struct {
	status int
	mark   string // markRuntime if empty
	rule   string // the setting that is behind it; empty: the decision of a filter, or the protocol
	reason string
}

func (f refusal) answer() answer {
	a := answer{status: statusLine(f.status), mark: f.mark, body: f.reason + "\n"}
	if a.mark == "" {
		a.mark = markRuntime
	}
	return a
}

// judgeRequest applies what concerns the request alone, in the order of REQ-2: target, host match, TRACE, the request rules,
// the filter with its edits. The destination must be allowed already. A refusal is reported (REQ-3) and comes with its
// answer; a zero answer means that ctx has ended and there is nobody to answer. Only an allowed request may go on.
func (s *Server) judgeRequest(ctx context.Context, r *request) (a answer, refused bool) {
	f := s.judgeTarget(r)
	if f.status == 0 {
		f = s.judgeHost(r)
	}
	if f.status == 0 {
		f = s.judgeMethod(r)
	}
	if f.status == 0 {
		f = s.judgeRules(r)
	}
	if f.status == 0 {
		var gone error
		if f, gone = s.askFilter(ctx, r); gone != nil {
			return answer{}, true
		}
	}
	if f.status != 0 {
		s.reportRequest(r, f)
		return f.answer(), true
	}
	return answer{}, false
}

// at is the target of r with its path, for URLs and Host fields.
func (r *request) at() requestTarget {
	t := r.absolute
	if r.tunnel {
		t = requestTarget{authority: authority{host: r.host.Name, port: r.port}, tls: true}
	}
	t.path = r.path
	return t
}

// reportRequest records a request that was refused although its host is allowed (NET-70, VIO-13, VIO-14).
func (s *Server) reportRequest(r *request, f refusal) {
	url := shownTarget(r.target)
	if r.path != "" {
		url = r.at().url(r.host)
	}
	s.reportEvent(violation.Event{
		PID: r.pid, Operation: violation.HTTPRequest, Target: violation.Request(r.method, url), Rule: f.rule, Reason: f.reason,
		CommandID: s.keyOf(asking{key: r.key}),
	})
}
