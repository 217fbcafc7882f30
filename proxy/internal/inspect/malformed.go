package inspect

import (
	"errors"
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// diagnose says what is wrong with a head that could not be read, or read only in part. It decides nothing: the head has
// been refused already, and this finds the words.
func diagnose(head string, err error) Malformed {
	line, fields, _ := strings.Cut(head, "\n")
	m, ok := diagnoseLine(strings.TrimSuffix(line, "\r"))
	switch {
	case errors.Is(err, httphead.ErrTooLarge):
		m.What, m.Target = "the head is too long", false
	case m.Target:
	case strings.Contains(head, "\n") && !strings.HasSuffix(line, "\r"):
		m.What = bareLF
	case !ok:
	default:
		m.What = diagnoseFields(fields)
	}
	return m
}

const bareLF = "a line ends in LF without CR"

// diagnoseLine looks at a request line. false: it is the line that is malformed.
func diagnoseLine(line string) (m Malformed, ok bool) {
	m.What = "the request line"
	method, rest, _ := strings.Cut(line, " ")
	if !httphead.ValidName(method) {
		return m, false
	}
	m.Method = method
	i := strings.LastIndexByte(rest, ' ')
	if i <= 0 {
		return m, false
	}
	version := rest[i+1:]
	m.Spelled = rest[:i]
	if version != "HTTP/1.1" && version != "HTTP/1.0" {
		return m, false
	}
	m.Target = !validTarget(m.Spelled)
	if m.Target {
		m.What = "the request target"
	}
	return m, !m.Target
}

// validTarget reports whether a target is in printable ASCII without a space.
func validTarget(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return s != ""
}

func diagnoseFields(fields string) string {
	for fields != "" {
		line, rest, ended := strings.Cut(fields, "\n")
		fields = rest
		if ended && !strings.HasSuffix(line, "\r") {
			return bareLF
		}
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			continue
		}
		name, value, colon := strings.Cut(line, ":")
		switch {
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			return "a folded header line"
		case !colon:
			return "a header line without a colon"
		case strings.HasSuffix(name, " ") || strings.HasSuffix(name, "\t"):
			return "a space before a colon"
		case !httphead.ValidName(name):
			return "an invalid header name"
		case !httphead.ValidValue(value):
			return "an invalid header value"
		}
	}
	return "the head"
}

// diagnoseFraming says what is wrong with the framing of a request whose head is in order.
func diagnoseFraming(r *httphead.Request) string {
	_, lengths := r.Header.Get("Content-Length")
	_, codings := r.Header.Get("Transfer-Encoding")
	switch {
	case lengths > 0 && codings > 0:
		return "Content-Length together with Transfer-Encoding"
	case lengths > 1:
		return "a repeated Content-Length"
	case lengths == 1:
		return "an invalid Content-Length"
	case codings > 1:
		return "a repeated Transfer-Encoding"
	}
	return "a transfer coding other than chunked"
}

// malformedRequest is what is told about a request whose head could be parsed.
func malformedRequest(r *httphead.Request, what string) Malformed {
	return Malformed{What: what, Method: r.Method, Spelled: r.Target}
}
