package s3stand

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sort"
	"strings"
)

// encode is UriEncode of the documents: every byte but the unreserved characters becomes "%XY", in upper case.
func encode(s string, slash bool) string {
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	const digits = "0123456789ABCDEF"
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if strings.IndexByte(unreserved, c) >= 0 || c == '/' && !slash {
			out.WriteByte(c)
		} else {
			out.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return out.String()
}

// decode undoes percent-encoding. "+" is no blank: the documents know "%20" alone. What is no escape stays.
func decode(s string) string {
	var out strings.Builder
	for len(s) > 0 {
		if s[0] == '%' && len(s) > 2 {
			if b, err := hex.DecodeString(s[1:3]); err == nil {
				out.WriteByte(b[0])
				s = s[3:]
				continue
			}
		}
		out.WriteByte(s[0])
		s = s[1:]
	}
	return out.String()
}

// canonicalURI is the path as it is signed. S3 encodes the name of the object once and resolves nothing; every other
// service removes redundant segments (RFC 3986) and encodes what was sent once more.
func canonicalURI(path, service string) string {
	if service == "s3" {
		return encode(decode(path), false)
	}
	var stack []string
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for _, s := range segments {
		if s == ".." && len(stack) > 0 {
			stack = stack[:len(stack)-1]
		}
		if s != "" && s != "." && s != ".." {
			stack = append(stack, encode(s, true))
		}
	}
	out := "/" + strings.Join(stack, "/")
	if strings.HasSuffix(path, "/") && out != "/" {
		out += "/"
	}
	return out
}

// parameter is one of a query, decoded.
type parameter struct{ name, value string }

func parameters(query string) (list []parameter) {
	for _, item := range strings.Split(query, "&") {
		if item != "" {
			name, value, _ := strings.Cut(item, "=")
			list = append(list, parameter{decode(name), decode(value)})
		}
	}
	return list
}

// canonicalQueryString sorts by encoded name and then by encoded value.
func canonicalQueryString(list []parameter) string {
	encoded := make([]parameter, 0, len(list))
	for _, p := range list {
		encoded = append(encoded, parameter{encode(p.name, true), encode(p.value, true)})
	}
	sort.SliceStable(encoded, func(i, j int) bool {
		if encoded[i].name != encoded[j].name {
			return encoded[i].name < encoded[j].name
		}
		return encoded[i].value < encoded[j].value
	})
	var out []string
	for _, p := range encoded {
		out = append(out, p.name+"="+p.value)
	}
	return strings.Join(out, "&")
}

// canonicalHeaders has a line for each signed header. ok is false if one of them is not in the request.
func canonicalHeaders(r *http.Request, signed []string) (text string, ok bool) {
	for _, name := range signed {
		values := r.Header.Values(name)
		switch {
		case name == "host":
			values = []string{r.Host}
		case len(values) == 0:
			return "", false
		}
		var clean []string
		for _, v := range values {
			clean = append(clean, strings.Join(strings.FieldsFunc(v, func(c rune) bool { return c == ' ' || c == '\t' }), " "))
		}
		text += name + ":" + strings.Join(clean, ",") + "\n"
	}
	return text, true
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func hmacSHA256(key []byte, message string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(message))
	return h.Sum(nil)
}

// signature is the last two steps: the signing key of the scope, and the string to sign.
func signature(secret, date, region, service, timestamp, canonicalRequest string) string {
	scope := date + "/" + region + "/" + service + "/aws4_request"
	key := hmacSHA256([]byte("AWS4"+secret), date)
	for _, part := range []string{region, service, "aws4_request"} {
		key = hmacSHA256(key, part)
	}
	return hex.EncodeToString(hmacSHA256(key, "AWS4-HMAC-SHA256\n"+timestamp+"\n"+scope+"\n"+sha256Hex([]byte(canonicalRequest))))
}
