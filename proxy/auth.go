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

// authenticate checks the credentials of an HTTP request (NET-20) and returns the attribution key: the listener's if that
// tells, else the one that the user name carries (NET-21). More than one Proxy-Authorization field is refused: which one counts would be a guess.
func (s *Server) authenticate(h httphead.Header) (key string, ok bool) {
	if s.open {
		return s.identity, true
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
	if s.identity != "" {
		return s.identity, true
	}
	return attributionKey(user), true
}

// rsyncPort is the port of rsync:// (RFC 5781).
const rsyncPort = 873

// admitsRsync reports whether a CONNECT is served without credentials: rsync takes no credentials from RSYNC_PROXY. Only
// the processes of one sandbox can reach a listener that has an identity, and all of them hold the token, so it shows
// nothing new there. Credentials that are presented are checked all the same.
func (s *Server) admitsRsync(req *httphead.Request) bool {
	_, count := req.Header.Get("Proxy-Authorization")
	target, ok := parseAuthority(req.Target)
	return s.identity != "" && s.token != "" && count == 0 && ok && target.port == rsyncPort
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
