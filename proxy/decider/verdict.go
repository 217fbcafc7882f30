package decider

import (
	"strings"
	"unicode/utf8"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// action is what a verdict says.
type action uint8

// The zero value is a denial.
const (
	actionDeny action = iota
	actionAllow
	actionNeedBody
)

// verdict is one checked message of the decider.
type verdict struct {
	id     uint64
	action action

	status int    // deny: 400 to 599
	reason string // deny: UTF-8; empty: none was given

	max int64 // need_body: bytes

	sets       []setHeader // allow, in the order of the message
	removes    []string    // allow: lower-case names
	class      string      // allow: of the credential; empty: there is none
	credential string      // never logged, stored or echoed (PRX-45)
}

// setHeader is one member of setHeaders.
type setHeader struct {
	name   string   // lower case
	values []string // UTF-8
}

// The limits of verdicts (PRX-37, PRX-41 to PRX-45).
const (
	maxHeaderValues    = 190
	maxHeaderBytes     = 64 << 10
	maxReason          = 1024
	maxCredential      = 8192
	maxNeedBody        = 32 << 20
	minDeny, aboveDeny = 400, 600
)

// framingNames are the headers that neither setHeaders nor removeHeaders may name, credentialNames what setHeaders may not
// either, as a credential has its own place (PRX-44). Both are folded.
var (
	framingNames = [...]string{
		"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive", "proxy-connection",
	}
	credentialNames = [...]string{"authorization", "proxy-authorization", "cookie", "x-api-key"}
)

// parseVerdict checks a message that is no hello; false: it breaks the protocol (PRX-40 to PRX-45, PRX-31).
func parseVerdict(v *value) (*verdict, bool) {
	if !v.has("t", "verdict") {
		return nil, false
	}
	id := v.member("id")
	if id == nil {
		return nil, false
	}
	out := &verdict{}
	var ok bool
	if out.id, ok = id.integer(); !ok || out.id == 0 {
		return nil, false
	}
	fields, ok := actionFields(v.member("action"), out)
	if !ok {
		return nil, false
	}
	for i, key := range v.keys {
		switch key {
		case "t", "id", "action":
			continue
		}
		parse, known := fields[key]
		if !known || !parse(&v.items[i], out) {
			return nil, false
		}
	}
	return out, out.complete()
}

// field checks one field and puts it into a verdict.
type field func(*value, *verdict) bool

// actionFields are the fields of an action beyond those that all have.
func actionFields(v *value, out *verdict) (map[string]field, bool) {
	if v == nil || v.kind != kindString {
		return nil, false
	}
	switch v.text {
	case "allow":
		out.action = actionAllow
		return map[string]field{"setHeaders": parseSets, "removeHeaders": parseRemoves, "cred": parseClass, "credential": parseCredential}, true
	case "deny":
		out.action = actionDeny
		return map[string]field{"status": parseStatus, "reason": parseReason}, true
	case "need_body":
		out.action = actionNeedBody
		return map[string]field{"max": parseMax}, true
	}
	return nil, false
}

// complete reports whether nothing is missing: fields that were sent are not empty.
func (v *verdict) complete() bool {
	switch v.action {
	case actionAllow:
		return (v.class == "") == (v.credential == "")
	case actionDeny:
		return v.status != 0
	}
	return v.max != 0
}

func parseStatus(v *value, out *verdict) bool {
	n, ok := v.integer()
	out.status = int(n)
	return ok && n >= minDeny && n < aboveDeny
}

func parseReason(v *value, out *verdict) bool {
	out.reason = v.text
	return v.kind == kindString && v.text != "" && len(v.text) <= maxReason && printable(v.text)
}

func parseMax(v *value, out *verdict) bool {
	n, ok := v.integer()
	out.max = int64(n)
	return ok && n >= 1 && n <= maxNeedBody
}

func parseClass(v *value, out *verdict) bool {
	out.class = v.text
	return v.kind == kindString && v.text != ""
}

func parseCredential(v *value, out *verdict) bool {
	out.credential = v.text
	if v.kind != kindString || v.text == "" || len(v.text) > maxCredential {
		return false
	}
	for i := range len(v.text) {
		if c := v.text[i]; c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

func parseSets(v *value, out *verdict) bool {
	if v.kind != kindObject || len(v.keys) == 0 {
		return false
	}
	var size headerSize
	for i, name := range v.keys {
		list := &v.items[i]
		if list.kind != kindArray || !lowerToken(name) || listed(framingNames[:], name) || listed(credentialNames[:], name) {
			return false
		}
		set := setHeader{name: name}
		for j := range list.items {
			item := &list.items[j]
			if item.kind != kindString || !printable(item.text) {
				return false
			}
			set.values = append(set.values, item.text)
		}
		if !size.add(set) {
			return false
		}
		out.sets = append(out.sets, set)
	}
	return true
}

func parseRemoves(v *value, out *verdict) bool {
	if v.kind != kindArray || len(v.items) == 0 {
		return false
	}
	var size headerSize
	seen := map[string]struct{}{}
	for i := range v.items {
		item := &v.items[i]
		if item.kind != kindString || !lowerToken(item.text) || listed(framingNames[:], item.text) {
			return false
		}
		if _, twice := seen[item.text]; twice || !size.add(setHeader{name: item.text}) {
			return false
		}
		seen[item.text] = struct{}{}
		out.removes = append(out.removes, item.text)
	}
	return true
}

// headerSize counts headers as PRX-37 does: values, a name without any being one, and bytes of UTF-8, each name once.
type headerSize struct{ values, bytes int }

// add counts one name with its values and reports whether the limits still hold.
func (s *headerSize) add(h setHeader) bool {
	s.values += max(len(h.values), 1)
	s.bytes += len(h.name)
	for _, v := range h.values {
		s.bytes += len(v)
	}
	return s.values <= maxHeaderValues && s.bytes <= maxHeaderBytes
}

// printable reports whether UTF-8 text has no control character but the tab: C0, DEL and U+0080 to U+009F.
func printable(s string) bool {
	for _, r := range s {
		if r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return false
		}
	}
	return utf8.ValidString(s)
}

// lowerToken reports whether s is a header name in lower case.
func lowerToken(s string) bool { return httphead.ValidName(s) && s == strings.ToLower(s) }

// listed reports whether a name is one of a list of folded names.
func listed(list []string, name string) bool {
	name = httphead.Fold(name)
	for _, l := range list {
		if l == name {
			return true
		}
	}
	return false
}
