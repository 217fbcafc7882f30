package proxy

import (
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// judgeRules applies network.requestRules to a request whose target is known.
func (s *Server) judgeRules(r *request) refusal {
	if !r.rules.Requests.Names(r.host, r.port) {
		return refusal{}
	}
	methods := methodOverrides(r.header)
	v := r.rules.Requests.Decide(r.method, r.host, r.port, r.path, methods)
	for _, path := range pathOverrides(r.header) {
		if v.Allowed {
			v = r.rules.Requests.Decide(r.method, r.host, r.port, path, methods)
		}
	}
	switch {
	case v.Allowed:
		return refusal{}
	case v.Ambiguous:
		return refusal{status: 400, mark: markAmbiguous, rule: v.Rule, reason: v.Reason}
	}
	return refusal{status: 403, rule: v.Rule, reason: violation.Clean(v.Reason)}
}

// methodOverrides are the methods that some servers take a request for by its fields, whatever the spelling (REQ-19).
func methodOverrides(h httphead.Header) []string {
	var methods []string
	for _, f := range h {
		switch httphead.Fold(f.Name) {
		case "x-http-method-override", "x-http-method", "x-method-override":
			if value := strings.TrimSpace(f.Value); value != "" {
				methods = append(methods, value)
			}
		}
	}
	return methods
}

// pathOverrides are the paths that some servers take a request to be for by its fields, whatever the spelling (REQ-19): IIS and
// frameworks that run on it.
func pathOverrides(h httphead.Header) []string {
	var paths []string
	for _, f := range h {
		switch httphead.Fold(f.Name) {
		case "x-original-url", "x-rewrite-url":
			path := strings.TrimSpace(f.Value)
			if scheme, rest, ok := strings.Cut(path, "://"); ok && !strings.ContainsAny(scheme, "/?#") {
				_, path, _ = strings.Cut(rest, "/")
			}
			if !strings.HasPrefix(path, "/") {
				path = "/" + path
			}
			paths = append(paths, path)
		}
	}
	return paths
}
