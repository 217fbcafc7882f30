package credential

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// basic returns the value of an Authorization field of the scheme Basic (RFC 7617) with the sentinels in its decoded
// user-id and password replaced, and whether there was one (CRED-23). Everything else stays byte for byte: other
// schemes, what is not base64 in the standard alphabet, and credentials without a sentinel. Padding may be missing on the
// way in; it is there on the way out. Control characters are encoded with the rest, so they are for the server to judge.
func (i *Injection) basic(value string) (string, bool) {
	token, decoded, ok := cutBasic(value)
	if !ok {
		return "", false
	}
	text, found, _ := i.replaceText(decoded)
	defer wipe(text)
	if !found {
		return "", false
	}
	encoded := base64.StdEncoding.AppendEncode(nil, text)
	defer wipe(encoded)
	return value[:len(value)-len(token)] + string(encoded), true
}

// cutBasic returns the base64 of the value of an Authorization field of the scheme Basic, and what it says.
func cutBasic(value string) (token string, decoded []byte, ok bool) {
	const scheme = "Basic"
	if len(value) <= len(scheme) || !httphead.EqualFold(value[:len(scheme)], scheme) {
		return "", nil, false
	}
	token = strings.TrimLeft(value[len(scheme):], " \t")
	if len(token) == len(value)-len(scheme) {
		return "", nil, false
	}
	encoding := base64.StdEncoding
	if !strings.HasSuffix(token, "=") {
		encoding = base64.RawStdEncoding
	}
	decoded, err := encoding.DecodeString(token)
	return token, decoded, err == nil
}

// Left returns the names of the fields in which something stands that looks like a sentinel, Basic credentials included: what
// a debug log can tell of a request whose values were not put in. It never returns a part of a value.
func Left(h httphead.Header) []string {
	var names []string
	for _, f := range h {
		_, decoded, _ := cutBasic(f.Value)
		if strings.Contains(f.Value, sentinelPrefix) || bytes.Contains(decoded, []byte(sentinelPrefix)) {
			names = append(names, f.Name)
		}
		wipe(decoded)
	}
	return names
}
