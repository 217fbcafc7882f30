package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var platforms = []string{"linux", "darwin", "windows"}

// FuzzDecode: no input panics; what is refused is refused with one of the two error types; what is accepted also
// passes as a value, decodes to the same value again, and survives Clone.
func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, goos := range platforms {
			c, err := decodeFor(goos, data)
			if err != nil {
				checkRefusal(t, err)
				continue
			}
			if err := c.validateFor(goos); err != nil {
				t.Errorf("LIB-2, %s: accepted as text, refused as a value: %v", goos, err)
			}
			again, err := decodeFor(goos, data)
			if err != nil || !reflect.DeepEqual(c, again) {
				t.Errorf("%s: two decodings differ: %+v, %+v, %v", goos, c, again, err)
			}
			if !reflect.DeepEqual(c, c.Clone()) {
				t.Errorf("%s: a clone differs", goos)
			}
		}
		checkNothingReplaced(t, data)
	})
}

// checkNothingReplaced is CFG-10: what is read holds U+FFFD only if the file spells it.
func checkNothingReplaced(t *testing.T, data []byte) {
	tree, err := parseJSON(data)
	if err != nil || bytes.Contains(data, []byte("\ufffd")) || bytes.Contains(bytes.ToLower(data), []byte(`\ufffd`)) {
		return
	}
	again, err := json.Marshal(tree)
	if err != nil || bytes.Contains(again, []byte("\ufffd")) {
		t.Errorf("CFG-10: %q was read as %s, %v", data, again, err)
	}
}

func checkRefusal(t *testing.T, err error) {
	var syntax *SyntaxError
	var issues *Error
	switch {
	case errors.As(err, &syntax) && syntax.Detail != "":
	case errors.As(err, &issues) && len(issues.Issues) > 0:
		for _, issue := range issues.Issues {
			if issue.Path == "" || issue.Reason == "" {
				t.Errorf("CFG-7: an issue without path or reason: %+v", issue)
			}
		}
	default:
		t.Errorf("an error of neither type, or an empty one: %#v", err)
	}
	if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
		t.Errorf("control characters of the file reach the terminal: %q", err.Error())
	}
}

// FuzzParseDomain: an accepted entry names a canonical host, keeps its meaning when it is written canonically, and
// only denied lists take "*".
func FuzzParseDomain(f *testing.F) {
	f.Fuzz(func(t *testing.T, entry string, port, anyHost bool) {
		form := DomainForm{Port: port, Any: anyHost}
		d, err := ParseDomain(entry, form)
		if err != nil {
			if !errors.Is(err, ErrInvalidDomain) || !reflect.DeepEqual(d, Domain{}) {
				t.Errorf("%v with %+v", err, d)
			}
			return
		}
		if d.Any {
			if !anyHost || d.Wildcard || d.Host != (Host{}) {
				t.Errorf("CFG-47: %q = %+v", entry, d)
			}
			return
		}
		h, err := CanonicalHost(d.Host.Name)
		if err != nil || h != d.Host {
			t.Errorf("CFG-50: %q is not canonical: %+v, %v", d.Host.Name, h, err)
		}
		if d.Port != 0 && !port || d.Wildcard && h.IsLiteral() {
			t.Errorf("CFG-41, CFG-49: %q = %+v", entry, d)
		}
		if !d.Wildcard != d.Matches(h, d.Port) {
			t.Errorf("CFG-50: %+v on its own name", d)
		}
		canonical := d.Host.Name
		if d.Wildcard {
			canonical = "*." + canonical
		} else if h.IsLiteral() && h.Addr.Is6() {
			canonical = "[" + canonical + "]"
		}
		again, err := ParseDomain(canonical, DomainForm{})
		if err != nil || again.Host != d.Host || again.Wildcard != d.Wildcard || !again.Covers(d) || !d.Covers(again) {
			t.Errorf("%q and its canonical spelling %q differ: %+v, %+v, %v", entry, canonical, d, again, err)
		}
	})
}

// FuzzCanonicalHost: the result is canonical itself, and holds only the bytes of NET-9 unless it is a literal.
func FuzzCanonicalHost(f *testing.F) {
	f.Fuzz(func(t *testing.T, raw string) {
		h, err := CanonicalHost(raw)
		if err != nil {
			if !errors.Is(err, ErrMalformedHost) || h != (Host{}) {
				t.Errorf("NET-9: %v with %+v", err, h)
			}
			return
		}
		again, err := CanonicalHost(h.Name)
		if err != nil || again != h {
			t.Errorf("NET-8: %q = %+v, and that = %+v, %v", raw, h, again, err)
		}
		if h.IsLiteral() {
			if h.Addr.Is4In6() || h.Addr.Zone() != "" || h.Name != h.Addr.String() {
				t.Errorf("NET-8: %q = %+v", raw, h)
			}
			return
		}
		if h.Name != strings.ToLower(h.Name) || strings.HasSuffix(h.Name, ".") || strings.ContainsFunc(h.Name, notHostByte) {
			t.Errorf("NET-9: %q = %q", raw, h.Name)
		}
	})
}

// FuzzParseAddressRange: the result is masked, never IPv4-mapped, and reads back as itself.
func FuzzParseAddressRange(f *testing.F) {
	f.Fuzz(func(t *testing.T, entry string) {
		p, err := ParseAddressRange(entry)
		if err != nil {
			if !errors.Is(err, ErrInvalidAddress) || p.IsValid() {
				t.Errorf("CFG-55: %v with %v", err, p)
			}
			return
		}
		if !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() || p.Addr().Zone() != "" {
			t.Errorf("CFG-55: %q = %v", entry, p)
		}
		if again, err := ParseAddressRange(p.String()); err != nil || again != p {
			t.Errorf("CFG-55: %q = %v, and that = %v, %v", entry, p, again, err)
		}
	})
}

// FuzzCompileExtract: no pattern panics, and what compiles has the groups that ECMAScript counts.
func FuzzCompileExtract(f *testing.F) {
	f.Fuzz(func(t *testing.T, pattern string) {
		re, err := CompileExtract(pattern)
		if err != nil {
			if re != nil || !errors.Is(err, ErrExtractSyntax) && !errors.Is(err, ErrExtractGroup) {
				t.Errorf("CFG-37: %v", err)
			}
			return
		}
		groups, err := surveyGroups(pattern)
		if err != nil || len(re.GetGroupNumbers()) != groups.count+1 {
			t.Errorf("CFG-37: %q: engine has groups %v, the pattern has %d, %v", pattern, re.GetGroupNumbers(), groups.count, err)
		}
	})
}

// FuzzDecodeOverride_LIB13: what an override makes of a session is valid, or refused, and the session stays as it is.
func FuzzDecodeOverride_LIB13(f *testing.F) {
	for _, seed := range []string{`{}`, `{"filesystem":{}}`, `{"filesystem":{"disabled":true,"denyRead":["a*"]}}`, `{"network":{"allowedDomains":["a.example"]}}`,
		`{"network":{"deniedDomains":[]}}`, `{"git":{"safeDirectories":["/x"]},"allowPty":true}`, `{"credentials":{"envVars":[{"name":"A","mode":"deny"}]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := DecodeOverride(data)
		if err != nil {
			return
		}
		session := sessionConfig()
		c, err := o.Apply(session)
		if err == nil && c.Validate() != nil {
			t.Errorf("%q makes an invalid configuration: %v", data, c.Validate())
		}
		if d := cmp.Diff(sessionConfig(), session, cmpopts.IgnoreUnexported(Config{})); d != "" {
			t.Errorf("%q changes the session:\n%s", data, d)
		}
	})
}
