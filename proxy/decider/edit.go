package decider

import (
	"encoding/base64"
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// hopByHop are the headers that end at a proxy, folded (PRX-46).
var hopByHop = [...]string{
	"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
	"transfer-encoding", "upgrade",
}

// endToEnd reports whether a header may pass: it is neither hop-by-hop, nor named by a Connection header, nor, spelled with
// '_' or '.', one that a server could take for the framing or the host of the message.
func endToEnd(name string, nominated []string) bool {
	folded := httphead.Fold(name)
	for _, list := range [2][]string{hopByHop[:], nominated} {
		for _, l := range list {
			if folded == l {
				return false
			}
		}
	}
	look := strings.ContainsAny(name, "_.")
	return !look || folded != "content-length" && folded != "host"
}

// nominated returns the folded names that Connection headers list. Those that say where a message goes and where it ends
// cannot be taken out this way.
func nominated(h httphead.Header) []string {
	var names []string
	for _, f := range h {
		if !f.Is("Connection") {
			continue
		}
		for item := range strings.SplitSeq(f.Value, ",") {
			item = httphead.Fold(strings.Trim(item, " \t"))
			if item != "" && item != "host" && item != "content-length" {
				names = append(names, item)
			}
		}
	}
	return names
}

// Placement is one rule of where a credential goes (PRX-47). Empty Class and Host match every credential and host.
type Placement struct {
	Class string // the verdict's cred
	Host  string // canonical: lower case, without brackets or trailing dot
	// Field is the header; empty: Authorization.
	Field string
	// User, if not empty, makes the value "Basic " and base64 of User, a colon and the credential. Prefix is ignored then.
	User string
	// Prefix precedes the credential; it holds its own blank.
	Prefix string
}

// bearer is what is done where no rule matches.
var bearer = Placement{Prefix: "Bearer "}

// defaultPlacements is the table of PRX-47.
func defaultPlacements() []Placement {
	return []Placement{{Class: "github", Host: "github.com", User: "x-access-token"}}
}

// place returns the header that carries a credential.
func place(rules []Placement, class, host, credential string) httphead.Field {
	chosen := bearer
	for _, r := range rules {
		if (r.Class == "" || r.Class == class) && (r.Host == "" || r.Host == host) {
			chosen = r
			break
		}
	}
	f := httphead.Field{Name: chosen.Field, Value: chosen.Prefix + credential}
	if f.Name == "" {
		f.Name = "Authorization"
	}
	if chosen.User != "" {
		f.Value = "Basic " + base64.StdEncoding.EncodeToString([]byte(chosen.User+":"+credential))
	}
	return f
}

// sends reports whether a verdict puts anything into the request (PRX-48).
func (v *verdict) sends() bool {
	for _, set := range v.sets {
		if len(set.values) > 0 {
			return true
		}
	}
	return v.credential != ""
}

// edit returns the header that goes upstream (PRX-46): host in the place of the client's, everything in its order, then what
// the verdict sets. false: a value has a character that a header cannot carry (PRX-49).
func edit(h httphead.Header, host string, v *verdict, rules []Placement, name string) (httphead.Header, bool) {
	added, ok := v.added()
	if !ok {
		return nil, false
	}
	if v.credential != "" {
		added = append(added, place(rules, v.class, name, v.credential))
	}
	drop := map[string]struct{}{}
	for _, name := range v.removes {
		drop[httphead.Fold(name)] = struct{}{}
	}
	for _, f := range added {
		drop[httphead.Fold(f.Name)] = struct{}{}
	}
	if v.credential != "" {
		for _, name := range credentialNames {
			drop[name] = struct{}{}
		}
	}
	hopped := nominated(h)
	out := make(httphead.Header, 0, len(h)+len(added)+1)
	out = append(out, httphead.Field{Name: "Host", Value: host})
	for _, f := range h {
		if _, dropped := drop[httphead.Fold(f.Name)]; !dropped && !f.Is("Host") && endToEnd(f.Name, hopped) {
			out = append(out, f)
		}
	}
	return append(out, added...), true
}

// added returns the headers that setHeaders adds: names that differ in '_' and '.' alone are one header, under the first
// spelling.
func (v *verdict) added() (httphead.Header, bool) {
	var out httphead.Header
	first := map[string]string{}
	for _, set := range v.sets {
		for _, text := range set.values {
			value, ok := toLatin1(text)
			if !ok {
				return nil, false
			}
			name, known := first[httphead.Fold(set.name)]
			if !known {
				name = set.name
				first[httphead.Fold(name)] = name
			}
			out = append(out, httphead.Field{Name: name, Value: value})
		}
	}
	return out, true
}

// stripper takes headers out of responses (PRX-68): those of --strip-response-header, and X-Deny-Reason, by which a server
// would pose as this proxy.
type stripper []string

func newStripper(names []string) stripper {
	s := stripper{httphead.Fold(denyField)}
	for _, name := range names {
		if name = httphead.Fold(name); name != "content-length" { // without it the end of the body would be lost
			s = append(s, name)
		}
	}
	return s
}

func (s stripper) strip(_ int, h httphead.Header) httphead.Header {
	hopped := nominated(h)
	out := h[:0]
	for _, f := range h {
		if !listed(s, f.Name) && endToEnd(f.Name, hopped) {
			out = append(out, f)
		}
	}
	return out
}
