package s3stand

import (
	"crypto/hmac"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Key is an AWS key as its owner has it. Token is empty for a key that is not of a session.
type Key struct{ ID, Secret, Token string }

// Fault is why a request is refused, as AWS says it.
type Fault struct {
	Status        int
	Code, Message string
}

// Error makes a Fault an error.
func (f *Fault) Error() string { return f.Code + ": " + f.Message }

// Signed is what a signature that holds says of its request.
type Signed struct {
	Service string // of the scope: "s3", "sts" and so on
	Payload string // "signed", "UNSIGNED-PAYLOAD", or the streaming algorithm
	InQuery bool   // a presigned URL
}

const timeFormat = "20060102T150405Z"

// maxSkew is how far the clock of a client may be off.
const maxSkew = 15 * time.Minute

func denied(code, message string) *Fault { return &Fault{http.StatusForbidden, code, message} }

func badRequest(code, message string) *Fault { return &Fault{http.StatusBadRequest, code, message} }

// claim is what a request says about its own signature.
type claim struct {
	credential, signedHeaders, signature, timestamp, token, payload string
	query                                                           []parameter // those that are signed
	validity                                                        time.Duration
	inQuery                                                         bool
}

// Verify checks the signature of a request, which must be as net/http has read it, against a key, at the time now. body is
// all of its body. A nil *Fault means that it holds.
func Verify(r *http.Request, body []byte, key Key, now time.Time) (Signed, *Fault) {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	c, fault := readClaim(r, query)
	if fault != nil {
		return Signed{}, fault
	}
	scope := strings.Split(c.credential, "/")
	if len(scope) != 5 || scope[4] != "aws4_request" {
		return Signed{}, badRequest("AuthorizationHeaderMalformed", "the credential scope is malformed")
	}
	if scope[0] != key.ID {
		return Signed{}, denied("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
	}
	if fault := c.checkTime(scope[1], now); fault != nil {
		return Signed{}, fault
	}
	if c.token != key.Token {
		return Signed{}, denied("InvalidToken", "The provided token is malformed or otherwise invalid.")
	}
	signed := strings.Split(c.signedHeaders, ";")
	if fault := checkSigned(r, signed); fault != nil {
		return Signed{}, fault
	}
	payload, kind, fault := c.checkPayload(scope[3], body)
	if fault != nil {
		return Signed{}, fault
	}
	headers, ok := canonicalHeaders(r, signed)
	request := strings.Join([]string{r.Method, canonicalURI(path, scope[3]), canonicalQueryString(c.query), headers,
		c.signedHeaders, payload}, "\n")
	if !ok || !hmac.Equal([]byte(signature(key.Secret, scope[1], scope[2], scope[3], c.timestamp, request)), []byte(c.signature)) {
		return Signed{}, denied("SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.")
	}
	return Signed{Service: scope[3], Payload: kind, InQuery: c.inQuery}, nil
}

// readClaim takes the signature from the Authorization header or from the query.
func readClaim(r *http.Request, query string) (claim, *Fault) {
	c := claim{timestamp: r.Header.Get("X-Amz-Date"), token: r.Header.Get("X-Amz-Security-Token"),
		payload: r.Header.Get("X-Amz-Content-Sha256"), query: parameters(query)}
	fields := r.Header.Values("Authorization")
	if len(fields) == 0 {
		return readQuery(c)
	}
	rest, ok := strings.CutPrefix(fields[0], "AWS4-HMAC-SHA256 ")
	if !ok || len(fields) != 1 {
		return c, badRequest("InvalidArgument", "Unsupported Authorization Type")
	}
	for _, item := range strings.Split(rest, ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(item), "="); name {
		case "Credential":
			c.credential = value
		case "SignedHeaders":
			c.signedHeaders = value
		case "Signature":
			c.signature = value
		}
	}
	return c, nil
}

// readQuery takes it from the query of a presigned URL, which signs every parameter but the signature.
func readQuery(c claim) (claim, *Fault) {
	var all []parameter
	algorithm, seconds := "", ""
	c.inQuery, c.payload, c.token = true, "UNSIGNED-PAYLOAD", ""
	for _, p := range c.query {
		if p.name == "X-Amz-Signature" {
			c.signature = p.value
			continue
		}
		all = append(all, p)
		if to := map[string]*string{"X-Amz-Algorithm": &algorithm, "X-Amz-Credential": &c.credential, "X-Amz-Date": &c.timestamp,
			"X-Amz-SignedHeaders": &c.signedHeaders, "X-Amz-Security-Token": &c.token, "X-Amz-Expires": &seconds}[p.name]; to != nil {
			*to = p.value
		}
	}
	if algorithm != "AWS4-HMAC-SHA256" {
		return c, denied("AccessDenied", "Access Denied")
	}
	n, err := strconv.Atoi(seconds)
	if err != nil || n < 1 || n > 7*24*3600 {
		return c, badRequest("AuthorizationQueryParametersError", "X-Amz-Expires must be a number of seconds, at most a week")
	}
	c.query, c.validity = all, time.Duration(n)*time.Second
	return c, nil
}

// checkTime wants a clock that is about right, or a presigned URL that is still good, and the day of the scope.
func (c *claim) checkTime(day string, now time.Time) *Fault {
	at, err := time.Parse(timeFormat, c.timestamp)
	switch {
	case err != nil || c.timestamp[:8] != day:
		return denied("AccessDenied", "AWS authentication requires a valid Date or x-amz-date header")
	case c.inQuery && now.After(at.Add(c.validity)):
		return denied("AccessDenied", "Request has expired")
	case !c.inQuery && now.Sub(at).Abs() > maxSkew:
		return denied("RequestTimeTooSkewed", "The difference between the request time and the current time is too large.")
	}
	return nil
}

// checkSigned wants the signed headers sorted and in lower case, Host among them, and every x-amz-* header of the request.
func checkSigned(r *http.Request, signed []string) *Fault {
	if !sort.StringsAreSorted(signed) || strings.ToLower(strings.Join(signed, ";")) != strings.Join(signed, ";") {
		return badRequest("AuthorizationHeaderMalformed", "the signed headers are not sorted")
	}
	has := map[string]bool{}
	for _, name := range signed {
		has[name] = true
	}
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz-") && !has[name] {
			return denied("AccessDenied", "There were headers present in the request which were not signed")
		}
	}
	if !has["host"] {
		return denied("AccessDenied", "The host header was not signed")
	}
	return nil
}

// checkPayload gives the last line of what is signed, and what it says about the body.
func (c *claim) checkPayload(service string, body []byte) (line, kind string, fault *Fault) {
	switch hash := sha256Hex(body); {
	case c.payload == "UNSIGNED-PAYLOAD" || strings.HasPrefix(c.payload, "STREAMING-"):
		return c.payload, c.payload, nil
	case c.payload == "" && service == "s3":
		return "", "", badRequest("InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
	case c.payload != "" && c.payload != hash:
		return "", "", badRequest("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
	default:
		return hash, "signed", nil
	}
}
