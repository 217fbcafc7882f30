package credential

import (
	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// Header returns h with every sentinel in a value replaced (CRED-22), also where the value is the base64 of an
// Authorization: Basic field (CRED-23). Names are left alone. h is not changed; without anything to replace it is what
// comes back. ErrControl (CRED-24): a value that would land in a field as it is holds a control character, and the
// request must be refused. The tab counts as one: at the end of a field it would be lost on the way.
//
// The strings of the result hold real values. They cannot be overwritten, so they should live no longer than it takes to
// write the head.
func (i *Injection) Header(h httphead.Header) (httphead.Header, error) {
	out := h
	for k, f := range h {
		value, changed, err := i.field(f)
		if err != nil {
			return nil, err
		}
		if !changed {
			continue
		}
		if &out[0] == &h[0] {
			out = append(httphead.Header(nil), h...)
		}
		out[k].Value = value
	}
	return out, nil
}

// field returns the value of one field with its sentinels replaced, and whether there was one.
func (i *Injection) field(f httphead.Field) (value string, changed bool, err error) {
	if i.holds(f.Value) {
		text, found, control := i.replaceText([]byte(f.Value))
		defer wipe(text)
		if control {
			return "", false, ErrControl
		}
		if found {
			return string(text), true, nil
		}
	}
	if f.Is("Authorization") {
		value, changed = i.basic(f.Value)
	}
	return value, changed, nil
}

// replaceText returns text with its sentinels replaced, whether there was one, and whether a value that was put in holds
// a control character. The result is memory of its own, for the caller to overwrite.
func (sc *scanner) replaceText(text []byte) (out []byte, found, control bool) {
	for {
		pos, x := sc.find(text, 0)
		if x == nil {
			return appendSecret(out, text), found, control
		}
		out = appendSecret(out, text[:pos])
		there := x.use(func(value []byte) {
			control = control || holdsControl(value)
			out = appendSecret(out, value)
		})
		if !there {
			out = appendSecret(out, text[pos:pos+len(x.sentinel)])
		}
		found = found || there
		text = text[pos+len(x.sentinel):]
	}
}

// appendSecret is append for a buffer that holds values: the one that it outgrows is overwritten.
func appendSecret(dst, more []byte) []byte {
	if cap(dst)-len(dst) >= len(more) {
		return append(dst, more...)
	}
	grown := append(make([]byte, 0, 2*len(dst)+len(more)+64), dst...)
	wipe(dst)
	return append(grown, more...)
}

// holdsControl reports whether b holds a byte that cannot be in a field value.
func holdsControl(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return true
		}
	}
	return false
}
