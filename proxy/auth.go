package proxy

import (
	"crypto/subtle"
	"encoding/base64"
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// maxSuffix is the longest suffix of a user name that attributes a connection, in bytes (NET-21).
const maxSuffix = 251

// admits compares a password with the token in constant time (NET-18). Without a token nothing matches.
func (s *Server) admits(password string) bool {
	return s.token != "" && subtle.ConstantTimeCompare([]byte(password), []byte(s.token)) == 1
}

// authenticate checks the credentials of an HTTP request (NET-20) and returns the attribution key that its user name
// carries. More than one Proxy-Authorization field is refused: which one counts would be a guess.
func (s *Server) authenticate(h httphead.Header) (key string, ok bool) {
	if s.open {
		return "", true
	}
	value, count := h.Get("Proxy-Authorization")
	scheme, encoded, _ := strings.Cut(value, " ")
	if count != 1 || !strings.EqualFold(scheme, "Basic") {
		return "", false
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Trim(encoded, " "))
	if err != nil {
		return "", false
	}
	user, password, found := strings.Cut(string(raw), ":")
	if !s.admits(password) || !found || user == "" {
		return "", false
	}
	return attributionKey(user), true
}

// attributionKey returns the key in a user name, "srt." and the key in padded standard base64; "" if there is none, if it
// is too long, or if it is no base64 (NET-19, NET-21). It is a label that the client chooses, not a credential.
func attributionKey(user string) string {
	suffix, ok := strings.CutPrefix(user, "srt.")
	if !ok || len(suffix) > maxSuffix {
		return ""
	}
	key, err := base64.StdEncoding.DecodeString(suffix)
	if err != nil {
		return ""
	}
	return string(key)
}
