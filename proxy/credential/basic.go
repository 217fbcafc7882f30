package credential

import (
	"encoding/base64"
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// basic returns the value of an Authorization field of the scheme Basic (RFC 7617) with the sentinels in its decoded
// user-id and password replaced, and whether there was one (CRED-23). Everything else stays byte for byte: other
// schemes, what is not base64 in the standard alphabet, and credentials without a sentinel. Padding may be missing on the
// way in; it is there on the way out. Control characters are encoded with the rest, so they are for the server to judge.
func (i *Injection) basic(value string) (string, bool) {
	const scheme = "Basic"
	if len(value) <= len(scheme) || !httphead.EqualFold(value[:len(scheme)], scheme) {
		return "", false
	}
	token := strings.TrimLeft(value[len(scheme):], " \t")
	if len(token) == len(value)-len(scheme) {
		return "", false
	}
	encoding := base64.StdEncoding
	if !strings.HasSuffix(token, "=") {
		encoding = base64.RawStdEncoding
	}
	decoded, err := encoding.DecodeString(token)
	if err != nil {
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
