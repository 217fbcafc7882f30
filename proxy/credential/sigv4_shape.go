package credential

import (
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// Names and values of the AWS Signature Version 4 documents.
const (
	hmacAlgorithm   = "AWS4-HMAC-SHA256"
	ecdsaAlgorithm  = "AWS4-ECDSA-P256-SHA256"
	scopeEnd        = "aws4_request"
	contentHash     = "x-amz-content-sha256"
	contentLength   = "content-length"
	securityToken   = "x-amz-security-token" //nolint:gosec // G101: the name of a header
	unsignedPayload = "UNSIGNED-PAYLOAD"
	// unsignedTrailer is the one payload of the shape streaming whose signature covers none of its chunks.
	unsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
)

// neverForwarded are headers that do not reach the server as the client sent them, whatever h says: a signature that
// covers one cannot hold. Expect is answered by srt (TLS-34), Authorization is what the signature itself goes into.
var neverForwarded = []string{"authorization", "connection", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization",
	"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}

// shape is how a request carries a signature (CRED-29). The zero value is a request without one.
type shape uint8

const (
	notSigned shape = iota
	inHeader
	streaming
	presigned
	sigV4A
)

// signature is what a request says about its signature, nothing of it checked but its syntax.
type signature struct {
	keys                      []string // the key ids that it names; more than one is malformed
	credential, signedHeaders string
	malformed                 bool
}

// detect returns the shape of a request (CRED-29).
func detect(target string, h httphead.Header) (shape, signature) {
	authorization, _ := h.Get("Authorization")
	switch {
	case strings.HasPrefix(authorization, ecdsaAlgorithm):
		return sigV4A, parseAuthorization(authorization[len(ecdsaAlgorithm):])
	case strings.HasPrefix(authorization, hmacAlgorithm):
		found := parseAuthorization(authorization[len(hmacAlgorithm):])
		if hash, _ := h.Get(contentHash); strings.HasPrefix(hash, "STREAMING-") {
			return streaming, found
		}
		return inHeader, found
	}
	return detectQuery(target)
}

// parseAuthorization parses what follows the algorithm in an Authorization field: parameters separated by commas.
func parseAuthorization(text string) signature {
	var s signature
	var hasSignature bool
	// The algorithm must end where the parameters begin.
	s.malformed = text == "" || text[0] != ' '
	for item := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.Trim(item, " \t"), "=")
		repeated := false
		switch name {
		case "Credential":
			repeated, s.credential = len(s.keys) > 0, value
			s.keys = append(s.keys, keyID(value))
		case "SignedHeaders":
			repeated, s.signedHeaders = s.signedHeaders != "", value
		case "Signature":
			repeated, hasSignature = hasSignature, value != ""
		default:
			ok = false
		}
		s.malformed = s.malformed || repeated || !ok
	}
	s.malformed = s.malformed || s.credential == "" || s.signedHeaders == "" || !hasSignature
	return s
}

// keyID returns the key id of a credential: what comes before the scope.
func keyID(credential string) string {
	id, _, _ := strings.Cut(credential, "/")
	return id
}

// detectQuery looks for a signature in the query of a target.
func detectQuery(target string) (shape, signature) {
	_, query, ok := strings.Cut(target, "?")
	if !ok || !strings.Contains(query, hmacAlgorithm) {
		return notSigned, signature{}
	}
	var s signature
	var hasAlgorithm, hasSignature bool
	for item := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(item, "=")
		switch unescape(name) {
		case "X-Amz-Algorithm":
			hasAlgorithm = hasAlgorithm || unescape(value) == hmacAlgorithm
		case "X-Amz-Signature":
			hasSignature = true
		case "X-Amz-Credential":
			s.keys = append(s.keys, keyID(unescape(value)))
		}
	}
	if !hasAlgorithm || !hasSignature || len(s.keys) == 0 {
		return notSigned, signature{}
	}
	return presigned, s
}

// presigning returns the first parameter of a query that says how a presigned request is signed, or "". A request that is signed
// in its header has none. One that had would be given the signature of the presigned request that those parameters make, which
// credentials.sigv4 refuses and which holds for days: S3 quotes the Authorization field of a request that is signed in both ways.
func presigning(query string) string {
	for item := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(item, "=")
		switch name = strings.ToLower(unescape(name)); name {
		case "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-signedheaders", "x-amz-signature", securityToken:
			return name
		}
	}
	return ""
}

// scope is the credential scope of a signature.
type scope struct{ date, region, service string }

// String returns the scope as it is signed.
func (s scope) String() string { return s.date + "/" + s.region + "/" + s.service + "/" + scopeEnd }

// parseScope parses <key id>/<date>/<region>/<service>/aws4_request.
func parseScope(credential string) (scope, bool) {
	parts := strings.Split(credential, "/")
	if len(parts) != 5 || slices.Contains(parts, "") || parts[4] != scopeEnd || len(parts[1]) != 8 || !digits(parts[1]) {
		return scope{}, false
	}
	return scope{date: parts[1], region: parts[2], service: parts[3]}, true
}

// isTimestamp reports whether s has the form 20060102T150405Z.
func isTimestamp(s string) bool {
	return len(s) == 16 && digits(s[:8]) && s[8] == 'T' && digits(s[9:15]) && s[15] == 'Z'
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
