package inspect

import (
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// connectionFields belong to one connection and are not passed on, in either direction (TLS-32).
var connectionFields = [...]string{
	"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
	"transfer-encoding", "upgrade",
}

// isConnectionField reports whether a field belongs to one connection, or is spelled like one that does or that frames or
// routes a message: servers that hand fields to programs as variables (RFC 3875 section 4.1.18) read Transfer_Encoding as
// Transfer-Encoding.
func isConnectionField(name string) bool {
	for _, c := range connectionFields {
		if equalFolded(name, c) {
			return true
		}
	}
	return strings.ContainsAny(name, "_.") && (equalFolded(name, "content-length") || equalFolded(name, "host"))
}

// equalFolded compares a name with one in lower case, '_' and '.' read as '-' (REQ-19).
func equalFolded(name, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case c == '_' || c == '.':
			c = '-'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// endToEnd returns the fields of a response that are passed on, in a slice of its own.
func endToEnd(h httphead.Header) httphead.Header {
	out := make(httphead.Header, 0, len(h))
	for _, f := range h {
		// Connection cannot take out what says where the message ends: the client would read another one than srt did.
		if isConnectionField(f.Name) || !f.Is("Content-Length") && h.HasToken("Connection", f.Name) {
			continue
		}
		out = append(out, f)
	}
	return out
}

// isValid reports whether a field can be written without becoming another one, or more than one.
func isValid(f httphead.Field) bool {
	return httphead.ValidName(f.Name) && httphead.ValidValue(f.Value)
}
