package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

// request is one on its way out, spelled as it is.
type request struct {
	method, target string
	fields         [][2]string
	body           []byte
	chunked        bool
}

// String is the request without its body.
func (r *request) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s HTTP/1.1\r\n", r.method, r.target)
	for _, f := range r.fields {
		fmt.Fprintf(&out, "%s: %s\r\n", f[0], f[1])
	}
	return out.String() + "\r\n"
}

func (r *request) bytes() []byte {
	var out bytes.Buffer
	out.WriteString(r.String())
	if !r.chunked {
		return append(out.Bytes(), r.body...)
	}
	for part := range slices.Chunk(r.body, 7000) {
		fmt.Fprintf(&out, "%x\r\n%s\r\n", len(part), part)
	}
	out.WriteString("0\r\n\r\n")
	return out.Bytes()
}

// generator makes requests up. The fakes are those of its environment.
type generator struct {
	random *rand.Rand
	host   string
}

func (g *generator) one(list ...string) string { return list[g.random.IntN(len(list))] }

func (g *generator) often(n int) bool { return g.random.IntN(n) != 0 }

// pieces are what names are made of: what has to be encoded, what must not be, and what looks encoded.
var pieces = []string{"a", "B", "0", "-", "_", ".", "~", " ", "+", "%", "/", "%2F", "%25", "é", "日本", "!", "*", "'", "(", ")", ":", "@", "&", "=", "$",
	",", ";", "?", "#", "[", "\\", "\"", "<", "|", "^", "\x01", "\x7f", "\xff"}

func (g *generator) name() string {
	var out strings.Builder
	for range g.random.IntN(5) {
		out.WriteString(g.one(pieces...))
	}
	return out.String()
}

// escape encodes every byte but the unreserved ones, as AWS asks clients to.
func escape(s string) string {
	var out strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~", c) >= 0 {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// loose encodes as little as HTTP allows, in either case, and leaves what only looks like an escape.
func (g *generator) loose(s string) string {
	var out strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c <= ' ' || c > '~' || strings.IndexByte("?#&/[]\\\"<>|^`{}", c) >= 0:
			fmt.Fprintf(&out, g.one("%%%02X", "%%%02x"), c)
		case c == '%' && g.often(2):
			out.WriteString("%25")
		case c != '%' && !g.often(9):
			fmt.Fprintf(&out, g.one("%%%02X", "%%%02x"), c)
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// path is one for a service. S3 signs names, so they are spelled as it spells them; others sign what is sent.
func (g *generator) path(service string) string {
	var out strings.Builder
	for range 1 + g.random.IntN(5) {
		out.WriteString("/")
		switch segment := g.name(); {
		case !g.often(6):
			out.WriteString(g.one("", ".", "..", "..."))
		case service == "s3":
			out.WriteString(strings.ReplaceAll(escape(segment), "%2F", "/"))
		default: // a malformed escape in a path is no request for the server of the test
			out.WriteString(g.loose(strings.ReplaceAll(segment, "%", "")))
		}
	}
	if g.often(4) {
		return out.String()
	}
	return out.String() + "/"
}

func (g *generator) query() string {
	var items []string
	for range g.random.IntN(6) {
		item := g.loose(g.name())
		if g.often(4) {
			item += "=" + g.loose(g.name())
		}
		items = append(items, item)
		if !g.often(4) {
			items = append(items, item, strings.ToUpper(item))
		}
	}
	g.random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return strings.Join(items, "&")
}

// value is one of a header; $OTHER is a fake that is no part of the key.
func (g *generator) value() string {
	return g.one("", "x", "a  b", "  a   b  c ", "é", "a,b", "\"a  b\"", os.Getenv("OTHER"), "<"+os.Getenv("OTHER")+">  "+os.Getenv("OTHER"), "a;b:c")
}

// request makes one up.
func (g *generator) request() *request {
	service := g.one("s3", "s3", "s3", "ec2", "execute-api", "lambda", "dynamodb")
	r := &request{method: g.one("GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"), target: g.path(service)}
	if query := g.query(); query != "" || !g.often(5) {
		r.target += "?" + query
	}
	var fields [][2]string
	for range g.random.IntN(4) {
		name := g.one("X-Amz-Meta-A", "x-amz-meta-a", "X-AMZ-META-B", "x-amz-acl", "Content-Type", "User-Agent", "Accept-Encoding", "Amz-Sdk-Request", "Range")
		fields = append(fields, [2]string{name, g.value()})
	}
	payload := signedPayload
	if service == "s3" && !g.often(3) {
		payload = g.one(unsignedPayload, unsignedChunks)
	}
	if g.often(3) {
		r.body = []byte(strings.Repeat(g.one("x", "ab\n", os.Getenv("OTHER"), os.Getenv("AWS_ACCESS_KEY_ID")), g.random.IntN(4000)))
		r.chunked = !g.often(3)
	}
	if len(r.body) == 0 && payload == unsignedChunks {
		payload = unsignedPayload
	}
	g.sign(r, service, fields, payload)
	return r
}

// What is signed of a body.
const (
	signedPayload   = ""
	unsignedPayload = "UNSIGNED-PAYLOAD"
	unsignedChunks  = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
)

// upload is one of n bytes.
func (g *generator) upload(n int, unsigned bool) *request {
	r := &request{method: "PUT", target: "/b/large", body: bytes.Repeat([]byte("x"), n)}
	payload := signedPayload
	if unsigned {
		payload = unsignedPayload
	}
	g.sign(r, "s3", nil, payload)
	return r
}

// sign adds what a client of AWS adds, with a signature that is none.
func (g *generator) sign(r *request, service string, fields [][2]string, payload string) {
	now := time.Now().UTC().Format("20060102T150405Z")
	r.fields = append(r.fields, [2]string{"Host", g.host}, [2]string{g.one("X-Amz-Date", "x-amz-date"), now})
	signed := map[string]bool{"host": true, "x-amz-date": true}
	hash := sha256.Sum256(r.body)
	switch {
	case payload == unsignedChunks:
		fields = append(fields, [2]string{"Content-Encoding", "aws-chunked"}, [2]string{"X-Amz-Trailer", "x-amz-checksum-crc32"},
			[2]string{"X-Amz-Decoded-Content-Length", fmt.Sprint(len(r.body))}, [2]string{"X-Amz-Content-Sha256", payload})
		r.body = fmt.Appendf(nil, "%x\r\n%s\r\n0\r\nx-amz-checksum-crc32: AAAAAA==\r\n\r\n", len(r.body), r.body)
	case payload == unsignedPayload:
		fields = append(fields, [2]string{"X-Amz-Content-Sha256", payload})
	case service == "s3" || g.often(2):
		fields = append(fields, [2]string{"x-amz-content-sha256", hex.EncodeToString(hash[:])})
	}
	if g.often(2) {
		fields = append(fields, [2]string{"X-Amz-Security-Token", os.Getenv("AWS_SESSION_TOKEN")})
	}
	for _, f := range fields {
		name := strings.ToLower(f[0])
		signed[name] = signed[name] || strings.HasPrefix(name, "x-amz-") || g.often(3)
		r.fields = append(r.fields, f)
	}
	switch {
	case r.chunked:
		r.fields = append(r.fields, [2]string{"Transfer-Encoding", "chunked"})
	case len(r.body) > 0 || r.method == "PUT":
		r.fields = append(r.fields, [2]string{"Content-Length", fmt.Sprint(len(r.body))})
		signed["content-length"] = g.often(2)
	}
	var names []string
	for name, yes := range signed {
		if yes {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	r.fields = append(r.fields, [2]string{"Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s/eu-central-1/%s/aws4_request, "+
		"SignedHeaders=%s, Signature=%064d", os.Getenv("AWS_ACCESS_KEY_ID"), now[:8], service, strings.Join(names, ";"), 0)})
}
