package proxy

import (
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// hopByHop are the fields that end at a proxy, in both directions (NET-30).
var hopByHop = [...]string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "TE", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

func isHopByHop(f httphead.Field) bool {
	for _, name := range hopByHop {
		if f.Is(name) {
			return true
		}
	}
	return strings.ContainsAny(f.Name, "_.") && isLookalike(httphead.Fold(f.Name))
}

// isLookalike reports whether a folded name, spelled with '_' or '.', is one that frames or routes a message. Servers that
// hand fields to programs as variables (RFC 3875 section 4.1.18) cannot tell Transfer_Encoding from Transfer-Encoding, so
// such a field is not forwarded: it would be a second, contradictory framing.
func isLookalike(folded string) bool {
	for _, name := range hopByHop {
		if httphead.EqualFold(folded, name) {
			return true
		}
	}
	return folded == "content-length" || folded == "host"
}

// nominated returns the names, in lower case, that Connection fields list, or nil. The fields that say where the message
// goes and where it ends cannot be taken out this way: the next server would read another message than this one did.
func nominated(h httphead.Header) map[string]struct{} {
	var names map[string]struct{}
	for _, f := range h {
		if !f.Is("Connection") {
			continue
		}
		for item := range strings.SplitSeq(f.Value, ",") {
			item = strings.ToLower(strings.Trim(item, " \t"))
			switch item {
			case "", "close", "keep-alive", "host", "content-length":
				continue
			}
			if names == nil {
				names = map[string]struct{}{}
			}
			names[item] = struct{}{}
		}
	}
	return names
}

// endToEnd calls yield for each field that is forwarded, in order (NET-30).
func endToEnd(h httphead.Header, yield func(httphead.Field)) {
	names := nominated(h)
	for _, f := range h {
		if isHopByHop(f) {
			continue
		}
		if names != nil {
			if _, ok := names[strings.ToLower(f.Name)]; ok {
				continue
			}
		}
		yield(f)
	}
}

// firstLines tells the fields that count from further lines of a name of which only the first does (TLS-33). The zero value has
// seen none.
type firstLines uint

func (seen *firstLines) counts(f httphead.Field) bool {
	for i, name := range [...]string{
		"Authorization", "Content-Type", "User-Agent", "Referer", "From", "Host", "If-Modified-Since", "Max-Forwards",
	} {
		if f.Is(name) {
			first := *seen&(1<<i) == 0
			*seen |= 1 << i
			return first
		}
	}
	return true
}

// forwarded calls yield for each field of a request that is forwarded. In a tunnel the Host field is the target's, in the place
// of the client's, and srt itself answers Expect (TLS-32 to TLS-34).
func (r *request) forwarded(yield func(httphead.Field)) {
	if !r.tunnel {
		endToEnd(r.header, yield)
		return
	}
	host := httphead.Field{Name: "Host", Value: r.at().hostField(r.host)}
	if _, hosts := r.header.Get("Host"); hosts == 0 {
		yield(host)
	}
	var seen firstLines
	endToEnd(r.header, func(f httphead.Field) {
		switch {
		case !seen.counts(f), f.Is("Expect"):
			return
		case f.Is("Host"):
			f.Value = host.Value
		}
		yield(f)
	})
}

// stripResponse returns the fields of a response without those of stripResponseHeaders.
func (s *Server) stripResponse(h httphead.Header) httphead.Header {
	if len(s.strip) == 0 {
		return h
	}
	var out httphead.Header
	for _, f := range h {
		if !s.stripped(f.Name) {
			out = append(out, f)
		}
	}
	return out
}

// forwardTrailer returns the fields of a trailer section that may follow a body: neither hop-by-hop ones nor those that
// frame or route a message (RFC 9110 section 6.5.1), which a recipient that merges trailers would act upon.
func forwardTrailer(h httphead.Header, stripped func(string) bool) httphead.Header {
	var out httphead.Header
	for _, f := range h {
		if !isHopByHop(f) && !f.Is("Host") && !f.Is("Content-Length") && !stripped(f.Name) {
			out = append(out, f)
		}
	}
	return out
}

// stripped reports whether a response field is listed in stripResponseHeaders. Content-Length always stays, as without it
// the end of the body would be lost.
func (s *Server) stripped(name string) bool {
	if len(s.strip) == 0 {
		return false
	}
	folded := httphead.Fold(name)
	if folded == "content-length" {
		return false
	}
	for _, name := range s.strip {
		if folded == name {
			return true
		}
	}
	return false
}

func keepAll(string) bool { return false }
