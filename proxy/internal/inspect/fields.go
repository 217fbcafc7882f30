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
	named := namedByConnection(h)
	for _, f := range h {
		if isConnectionField(f.Name) {
			continue
		}
		if named != nil {
			if _, ok := named[strings.ToLower(f.Name)]; ok {
				continue
			}
		}
		out = append(out, f)
	}
	return out
}

// namedByConnection returns the names, in lower case, of the fields that Connection takes out, or nil: once for all fields, as a
// server may send thousands of both. Connection cannot take out what says where the message ends: the client would read another
// one than srt did.
func namedByConnection(h httphead.Header) map[string]struct{} {
	var named map[string]struct{}
	for _, f := range h {
		if !f.Is("Connection") {
			continue
		}
		for item := range strings.SplitSeq(f.Value, ",") {
			item = strings.ToLower(strings.Trim(item, " \t"))
			switch item {
			case "", "close", "keep-alive", "content-length":
				continue
			}
			if named == nil {
				named = map[string]struct{}{}
			}
			named[item] = struct{}{}
		}
	}
	return named
}

// isValid reports whether a field can be written without becoming another one, or more than one.
func isValid(f httphead.Field) bool {
	return httphead.ValidName(f.Name) && httphead.ValidValue(f.Value)
}
