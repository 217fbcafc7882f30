package credential

import (
	"io"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// canonicalRequest is what a signature covers ("Create a signed AWS API request", step 1).
type canonicalRequest struct {
	method      string
	path, query string          // canonical already
	header      httphead.Header // all that goes out; those in signed count
	signed      []string        // lower case, sorted, none twice
	host        string          // value of the signed header host
	length      string          // value of the signed header content-length
	payloadHash string
}

// writeTo writes the canonical request. It holds values, so w should be a hash rather than memory.
func (c *canonicalRequest) writeTo(w io.Writer) {
	put := func(parts ...string) {
		for _, p := range parts {
			_, _ = io.WriteString(w, p) // neither a hash nor a buffer fails
		}
	}
	put(c.method, "\n", c.path, "\n", c.query, "\n")
	for _, name := range c.signed {
		put(name, ":")
		switch name {
		case "host":
			put(trimAll(c.host))
		case contentLength:
			put(c.length)
		default:
			c.putField(put, name)
		}
		put("\n")
	}
	put("\n", strings.Join(c.signed, ";"), "\n", c.payloadHash)
}

// putField writes the values of the fields of a name, joined.
func (c *canonicalRequest) putField(put func(...string), name string) {
	separator := ""
	for _, f := range c.header {
		if f.Is(name) {
			put(separator, trimAll(f.Value))
			separator = ","
		}
	}
}

// trimAll trims blanks and collapses runs of them to one space (CRED-33).
func trimAll(s string) string {
	s = strings.Trim(s, " \t")
	if !strings.Contains(s, "  ") && !strings.Contains(s, "\t") {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\t' }), " ")
}

// verbatimPath are the services that sign the path as it is sent: an object's key may hold "..", "//" and escapes, all of
// which name something. Those besides s3 are other front doors to the same objects and sign alike.
var verbatimPath = []string{"s3", "s3express", "s3-object-lambda", "s3-outposts"}

// canonicalPath returns the canonical form of a path as it is forwarded, percent-encoding included (CRED-33).
func canonicalPath(path, service string) string {
	if path == "" {
		path = "/"
	}
	if slices.Contains(verbatimPath, service) {
		return path
	}
	var kept []string
	for segment := range strings.SplitSeq(path, "/") {
		switch segment {
		case "", ".":
		case "..":
			kept = kept[:max(len(kept)-1, 0)]
		default:
			kept = append(kept, segment)
		}
	}
	out := make([]byte, 0, len(path)+16)
	for _, segment := range kept {
		out = appendEscaped(append(out, '/'), segment)
	}
	if len(kept) == 0 || strings.HasSuffix(path, "/") {
		out = append(out, '/')
	}
	return string(out)
}

// canonicalQuery returns the canonical form of a query as it is forwarded (CRED-33). Nothing between two "&" is no
// parameter. The order is that of the encoded forms, as AWS's document asks.
func canonicalQuery(query string) string {
	type parameter struct{ name, value string }
	var list []parameter
	for item := range strings.SplitSeq(query, "&") {
		if item == "" {
			continue
		}
		name, value, _ := strings.Cut(item, "=")
		list = append(list, parameter{reescape(name), reescape(value)})
	}
	slices.SortFunc(list, func(a, b parameter) int {
		if order := strings.Compare(a.name, b.name); order != 0 {
			return order
		}
		return strings.Compare(a.value, b.value)
	})
	var out strings.Builder
	for k, p := range list {
		if k > 0 {
			out.WriteByte('&')
		}
		out.WriteString(p.name)
		out.WriteByte('=')
		out.WriteString(p.value)
	}
	return out.String()
}

func reescape(s string) string { return string(appendEscaped(nil, unescape(s))) }

const upperHex = "0123456789ABCDEF"

// appendEscaped appends s with every byte percent-encoded but the unreserved ones (RFC 3986 section 2.3).
func appendEscaped(out []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '~':
			out = append(out, c)
		default:
			out = append(out, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return out
}

// unescape decodes percent-encoding. What is none stays as it is, and so does "+", which stands for a space in forms
// alone (CRED-33).
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			high, low := hexDigit(s[i+1]), hexDigit(s[i+2])
			if high >= 0 && low >= 0 {
				out = append(out, byte(high<<4|low))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// hexDigit returns the value of a hex digit, -1 for anything else.
func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
