package credential

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// MaxSigned is the longest body in bytes of a request that is signed again with its payload (CRED-34).
const MaxSigned = 64 << 20

// SigV4Policy is credentials.sigv4: which request shapes that cannot be signed again are forwarded with ordinary
// substitution instead of refused (CRED-30). The zero value refuses all. Of those of the shape streaming, the ones whose
// signature leaves all chunks out are signed again when they are let through, so that the server takes them.
type SigV4Policy struct{ Streaming, Presigned, SigV4A bool }

// Refused says why a request must be answered with 403 instead of being forwarded. Reason is one line for the person,
// without any value.
type Refused struct{ Reason string }

// Signing is one request that a masked AWS key has signed and that is to be signed again with the real one (CRED-32). It
// belongs to that request and is not safe for concurrent use.
type Signing struct {
	inj     *Injection
	pair    pair
	request canonicalRequest // headers and payload hash still missing
	scope   scope
	date    string // the x-amz-date
	literal string // what is signed in place of a hash of the payload; "": its hash
	length  int64  // of a body that streams; negative: not told
}

// Plan decides whether a request is to be signed again (CRED-27 to CRED-31). Both results nil: it is none of a masked
// AWS key's, or policy lets it pass as it is, and ordinary substitution is all there is to do. target is the path and
// query that go out, h the fields that go out, hop-by-hop ones removed and edits applied but sentinels not yet replaced,
// host the Host field that goes out.
func (i *Injection) Plan(method, target string, h httphead.Header, host string, p SigV4Policy) (*Signing, *Refused) {
	shape, found := detect(target, h)
	if shape == notSigned {
		return nil, nil
	}
	which, ok := i.pairOf(found.keys)
	if !ok {
		return nil, nil
	}
	switch shape {
	case streaming:
		if hash, _ := h.Get(contentHash); hash != unsignedTrailer || !p.Streaming {
			return nil, policyRefusal("streaming", p.Streaming)
		}
	case presigned:
		return nil, policyRefusal("presigned", p.Presigned)
	case sigV4A:
		return nil, policyRefusal("sigv4a", p.SigV4A)
	}
	g := &Signing{inj: i, pair: which, length: -1}
	if r := g.readAuthorization(found); r != nil {
		return nil, r
	}
	if r := g.readFields(h); r != nil {
		return nil, r
	}
	path, query, _ := strings.Cut(target, "?")
	if name := presigning(query); name != "" {
		return nil, unsignable("its query holds " + name + ", which belongs to presigned requests: the server would not take both")
	}
	g.request.method, g.request.host = method, host
	g.request.path = canonicalPath(path, g.scope.service)
	g.request.query = canonicalQuery(query)
	return g, nil
}

// policyRefusal is the answer to a shape that cannot be signed again (CRED-30).
func policyRefusal(shape string, pass bool) *Refused {
	if pass {
		return nil
	}
	then := "forward it with the signature that it has, which the server will not accept."
	if shape == "streaming" {
		then = "forward it; the server will accept it only if it is a " + unsignedTrailer + ", which is signed again. Clients of AWS " +
			"send none of these if AWS_REQUEST_CHECKSUM_CALCULATION is when_required and nothing asks for a checksum."
	}
	return &Refused{Reason: "AWS SigV4 " + shape + " request uses a masked credential but cannot be re-signed by the " +
		"sandbox proxy; denied by policy. Set credentials.sigv4." + shape + " to \"passthrough\" to " + then}
}

// unsignable is the answer to a request of a masked key that cannot be signed again (CRED-31).
func unsignable(what string) *Refused {
	return &Refused{Reason: "AWS SigV4 request uses a masked credential but cannot be re-signed by the sandbox proxy: " + what}
}

// pairOf returns the pair whose key id's sentinel is among ids, if that may be sent to this host (CRED-28).
func (i *Injection) pairOf(ids []string) (pair, bool) {
	for _, p := range i.store.pairsAt(i.host) {
		if slices.Contains(ids, p.id.sentinel) {
			return p, true
		}
	}
	return pair{}, false
}

// readAuthorization takes the scope and the set of signed headers from the Authorization field.
func (g *Signing) readAuthorization(found signature) *Refused {
	if found.malformed {
		return unsignable("its Authorization field must hold Credential, SignedHeaders and Signature, each once")
	}
	var ok bool
	if g.scope, ok = parseScope(found.credential); !ok {
		return unsignable("its credential scope is not <key id>/<date>/<region>/<service>/aws4_request")
	}
	for name := range strings.SplitSeq(found.signedHeaders, ";") {
		if !httphead.ValidName(name) {
			return unsignable("its SignedHeaders is not a list of header names separated by \";\"")
		}
		g.request.signed = append(g.request.signed, strings.ToLower(name))
	}
	return nil
}

// readFields checks that everything the signature covers goes out, and how the payload is covered.
func (g *Signing) readFields(h httphead.Header) *Refused {
	date, dates := h.Get("X-Amz-Date")
	if dates != 1 || !isTimestamp(date) {
		return unsignable("it must have one x-amz-date of the form 20060102T150405Z")
	}
	g.date = date
	hash, hashes := h.Get(contentHash)
	if hashes > 1 {
		return unsignable("it has more than one " + contentHash)
	}
	if hash == unsignedPayload || hash == unsignedTrailer {
		g.literal = hash
	}
	if g.pair.token != nil {
		if !g.pair.token.injectable(g.inj.host) {
			return unsignable("the session token of its key may not be sent to this host (credentials.envVars injectHosts of " +
				g.pair.token.name + ")")
		}
		g.request.signed = append(g.request.signed, securityToken)
	}
	slices.Sort(g.request.signed)
	g.request.signed = slices.Compact(g.request.signed)
	if !slices.Contains(g.request.signed, "host") {
		return unsignable("its signature does not cover the header host, so it would hold at other servers too")
	}
	for _, name := range g.request.signed {
		if name == "host" || name == contentLength || name == securityToken && g.pair.token != nil {
			continue
		}
		if _, n := h.Get(name); n == 0 || slices.Contains(neverForwarded, name) {
			return unsignable("it signs the header " + name + ", which is not forwarded")
		}
	}
	return nil
}

// Unsigned reports whether the signature leaves the payload out (UNSIGNED-PAYLOAD, or unsigned chunks): the body then streams, and Sign needs
// none of it. Otherwise the whole body, replaced by Body, is handed to Sign, and goes out with its exact length (CRED-34).
func (g *Signing) Unsigned() bool { return g.literal != "" }

// SignsLength reports whether the signature covers the Content-Length of a body that streams. SetLength must then be
// called before Sign, with what goes out.
func (g *Signing) SignsLength() bool {
	return g.Unsigned() && slices.Contains(g.request.signed, contentLength)
}

// SetLength tells the Content-Length in bytes that goes out with a body that streams.
func (g *Signing) SetLength(n int64) { g.length = n }

// Body is Injection.Body for the body of this request: where the signature leaves the payload out, the members of the
// key are not looked for in it (CRED-34).
func (g *Signing) Body(r io.Reader) io.Reader {
	if !g.Unsigned() {
		return g.inj.Body(r)
	}
	return newReplacer(r, newScanner(g.others()), g.inj.kept)
}

// LengthKept is Injection.LengthKept for what Body looks for.
func (g *Signing) LengthKept() bool {
	if !g.Unsigned() {
		return g.inj.LengthKept()
	}
	g.inj.kept = lengthsKept(g.others())
	return g.inj.kept
}

// MaxPayload is Injection.MaxPayload for what Body looks for.
func (g *Signing) MaxPayload(length int64) int64 { return g.inj.MaxPayload(length) }

// others returns what is injectable here besides the members of the key: nothing into chunks, whose sizes and checksums the
// client has settled.
func (g *Signing) others() []*secret {
	if g.literal == unsignedTrailer {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(g.inj.list), func(x *secret) bool {
		return x == g.pair.id || x == g.pair.key || x == g.pair.token
	})
}

// TooLarge is the answer to a body over MaxSigned bytes that the signature covers, as Sign gives it. The caller may give
// it as soon as it knows.
func (g *Signing) TooLarge() *Refused {
	return unsignable("its signature covers a body of more than " + strconv.Itoa(MaxSigned) + " bytes; send x-amz-content-sha256: " +
		unsignedPayload + " to have it streamed")
}

// Sign returns the fields that go out, signed with the real key (CRED-32 to CRED-34). h is what Plan was given after
// Header: it is not changed. payload is the whole body that goes out, nil if there is none; it counts only where Unsigned
// is false.
func (g *Signing) Sign(h httphead.Header, payload []byte) (httphead.Header, *Refused) {
	r := g.request
	length := g.length
	switch {
	case g.Unsigned() && length < 0 && g.SignsLength():
		return nil, unsignable("it signs the header content-length, which is not forwarded")
	case g.Unsigned():
		r.payloadHash = g.literal
	case len(payload) > MaxSigned:
		return nil, g.TooLarge()
	default:
		length = int64(len(payload))
		r.payloadHash = hashHex(payload)
	}
	r.length = strconv.FormatInt(length, 10)
	r.header = slices.Clone(h)
	if _, n := h.Get(contentHash); n > 0 {
		r.header = setField(r.header, contentHash, r.payloadHash)
	}
	id, token, refused := g.values()
	if refused != nil {
		return nil, refused
	}
	if g.pair.token != nil {
		r.header = setField(r.header, securityToken, token)
	}
	signature, ok := g.sign(&r)
	if !ok {
		return nil, goneRefusal()
	}
	authorization := hmacAlgorithm + " Credential=" + id + "/" + g.scope.String() + ", SignedHeaders=" +
		strings.Join(r.signed, ";") + ", Signature=" + signature
	return setField(r.header, "Authorization", authorization), nil
}

// values returns the two members of the key that go out in fields.
func (g *Signing) values() (id, token string, refused *Refused) {
	text, idThere := g.pair.id.appendTo(nil)
	defer wipe(text)
	tokenThere := true
	var more []byte
	if g.pair.token != nil {
		more, tokenThere = g.pair.token.appendTo(nil)
		defer wipe(more)
	}
	switch {
	case !idThere || !tokenThere:
		return "", "", goneRefusal()
	case holdsControl(text) || holdsControl(more):
		return "", "", &Refused{Reason: ErrControl.Error()}
	}
	return string(text), string(more), nil
}

func goneRefusal() *Refused { return unsignable("the session is over") }

// setField replaces the first field of a name, keeping its spelling, drops the others, or appends one. It changes h.
func setField(h httphead.Header, name, value string) httphead.Header {
	named := func(f httphead.Field) bool { return f.Is(name) }
	at := slices.IndexFunc(h, named)
	if at < 0 {
		return append(h, httphead.Field{Name: name, Value: value})
	}
	h[at].Value = value
	rest := slices.DeleteFunc(h[at+1:], named)
	return h[:at+1+len(rest)]
}
