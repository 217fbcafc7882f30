package credential

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// awsRequest is what a client sends with the fakes: one signed header set, and further fields.
func awsRequest(credential, signed string, more ...httphead.Field) httphead.Header {
	return append(httphead.Header{{Name: "X-Amz-Date", Value: amzDate}, authorization(credential, signed)}, more...)
}

const presignedQuery = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + idFake +
	"%2F20150830%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=" + amzDate + "&X-Amz-SignedHeaders=host&X-Amz-Signature=00"

func TestCRED28_OthersAreUntouched(t *testing.T) {
	s := newStore(t)
	awsPair(t, s, realID, realKey, "")
	plant(t, s, "OTHER", otherFake, "other", "h.example", "*.amazonaws.com")
	for _, tc := range []struct {
		name, host, target string
		header             httphead.Header
	}{
		{"no signature", awsHost, "/", httphead.Header{{Name: "Authorization", Value: "Bearer " + idFake}}},
		{"no header at all", awsHost, "/", nil},
		{"a real key (case 34)", awsHost, "/", awsRequest("AKIAREALUNMASKED000"+serviceFor, "host;x-amz-date")},
		{"a real key that streams", awsHost, "/", awsRequest("AKIAREAL"+serviceFor, "host", httphead.Field{Name: contentHash, Value: "STREAMING-X"})},
		{"a longer key id", awsHost, "/", awsRequest(idFake+"x"+serviceFor, "host;x-amz-date")},
		{"another masked value as key id", awsHost, "/", awsRequest(otherFake+serviceFor, "host;x-amz-date")},
		{"a host that the key id may not go to", "h.example", "/", awsRequest(idFake+serviceFor, "host;x-amz-date")},
		{"the same, presigned", "h.example", "/?" + presignedQuery, nil},
		{"presigned with a real key", awsHost, "/?" + strings.ReplaceAll(presignedQuery, idFake, "AKIAREAL"), nil},
		{"a query without signature", awsHost, "/?" + strings.ReplaceAll(presignedQuery, "X-Amz-Signature", "X"), nil},
		{"a query without algorithm", awsHost, "/?" + strings.ReplaceAll(presignedQuery, "X-Amz-Algorithm", "X"), nil},
		{"a query without key", awsHost, "/?" + strings.ReplaceAll(presignedQuery, "X-Amz-Credential", "X"), nil},
		{"an unknown variant", awsHost, "/", httphead.Header{{Name: "Authorization", Value: hmacAlgorithm + "-X Credential=" + idFake + serviceFor}}},
		{"another algorithm", awsHost, "/", httphead.Header{{Name: "Authorization", Value: "AWS4-HMAC-SHA512 Credential=" + idFake + serviceFor}}},
	} {
		g, refused := at(t, s, tc.host).Plan("GET", tc.target, tc.header, tc.host, SigV4Policy{})
		if g != nil || refused != nil {
			t.Errorf("%s: %v, %v", tc.name, g, refused)
		}
	}
}

// TestCRED29_CRED30_Shapes is the second half of case 34.
func TestCRED29_CRED30_Shapes(t *testing.T) {
	s := newStore(t)
	awsPair(t, s, realID, realKey, "")
	ecdsa := httphead.Header{{Name: "Authorization", Value: "AWS4-ECDSA-P256-SHA256 Credential=" + idFake +
		"/20150830/service/aws4_request, SignedHeaders=host, Signature=00"}}
	for _, tc := range []struct {
		name, shape, target string
		header              httphead.Header
		pass                SigV4Policy
	}{
		{"streaming", "streaming", "/", awsRequest(idFake+serviceFor, "host", httphead.Field{Name: "X-Amz-Content-Sha256",
			Value: "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"}), SigV4Policy{Streaming: true}},
		{"streaming, malformed", "streaming", "/", awsRequest(idFake, "", httphead.Field{Name: contentHash, Value: "STREAMING-"}),
			SigV4Policy{Streaming: true}},
		{"presigned", "presigned", "/o?" + presignedQuery, nil, SigV4Policy{Presigned: true}},
		{"presigned, names escaped", "presigned", "/o?" + strings.ReplaceAll(presignedQuery, "X-Amz-", "X%2dAmz%2D"), nil,
			SigV4Policy{Presigned: true}},
		{"sigv4a", "sigv4a", "/", ecdsa, SigV4Policy{SigV4A: true}},
	} {
		i := at(t, s, awsHost)
		want := "AWS SigV4 " + tc.shape + " request uses a masked credential but cannot be re-signed by the sandbox proxy; denied by policy. " +
			"Set credentials.sigv4." + tc.shape + " to \"passthrough\""
		others := SigV4Policy{Streaming: !tc.pass.Streaming, Presigned: !tc.pass.Presigned, SigV4A: !tc.pass.SigV4A}
		for _, policy := range []SigV4Policy{{}, others} {
			g, refused := i.Plan("PUT", tc.target, tc.header, awsHost, policy)
			if g != nil || refused == nil || !strings.HasPrefix(refused.Reason, want) {
				t.Errorf("%s: %v, %+v", tc.name, g, refused)
			}
		}
		// The policy is that of the request, so that an update counts from the next one on.
		if g, refused := i.Plan("PUT", tc.target, tc.header, awsHost, tc.pass); g != nil || refused != nil {
			t.Errorf("%s, passed through: %v, %+v", tc.name, g, refused)
		}
	}
}

// TestCRED30_UnsignedChunks: of the shape streaming, what signs no chunk is refused like the rest, and signed again where policy
// lets it through: its body goes out byte for byte.
func TestCRED30_UnsignedChunks(t *testing.T) {
	s := newStore(t)
	awsPair(t, s, realID, realKey, "")
	plant(t, s, "OTHER", otherFake, "other", "*.amazonaws.com")
	h := awsRequest(idFake+serviceFor, "content-length;host;x-amz-content-sha256;x-amz-date;x-amz-trailer",
		httphead.Field{Name: contentHash, Value: unsignedTrailer}, httphead.Field{Name: "X-Amz-Trailer", Value: "x-amz-checksum-crc32"})
	i := at(t, s, awsHost)
	if g, refused := i.Plan("PUT", "/", h, awsHost, SigV4Policy{Presigned: true, SigV4A: true}); g != nil || refused == nil ||
		!strings.Contains(refused.Reason, "streaming request uses a masked credential") || !strings.Contains(refused.Reason, "signed again") {
		t.Errorf("%v, %v", g, refused)
	}
	g, refused := i.Plan("PUT", "/", h, awsHost, SigV4Policy{Streaming: true})
	if refused != nil || !g.Unsigned() || !g.SignsLength() || !g.LengthKept() {
		t.Fatalf("%v, %v", g, refused)
	}
	const body = "4\r\n" + otherFake + idFake + "\r\n0\r\nx-amz-checksum-crc32: AAAA\r\n\r\n"
	if out, err := io.ReadAll(g.Body(strings.NewReader(body))); string(out) != body || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	g.SetLength(int64(len(body)))
	out, refused := g.Sign(h, nil)
	if refused != nil {
		t.Fatal(refused)
	}
	if hash, n := out.Get(contentHash); hash != unsignedTrailer || n != 1 {
		t.Errorf("%d times %q", n, hash)
	}
	// The same with another word in the place of a hash is another signature.
	other, refused := i.Plan("PUT", "/", setField(slices.Clone(h), contentHash, unsignedPayload), awsHost, SigV4Policy{})
	if refused != nil {
		t.Fatal(refused)
	}
	other.SetLength(int64(len(body)))
	if second, _ := other.Sign(setField(slices.Clone(h), contentHash, unsignedPayload), nil); signatureOf(t, out) == signatureOf(t, second) {
		t.Error("what stands for the payload is not signed")
	}
	// What cannot be signed is refused, whatever policy says of the shape.
	bad := setField(slices.Clone(h), "X-Amz-Date", "yesterday")
	if g, refused := i.Plan("PUT", "/", bad, awsHost, SigV4Policy{Streaming: true}); g != nil || refused == nil {
		t.Errorf("%v, %v", g, refused)
	}
}

func TestCRED31_Refusals(t *testing.T) {
	s := newStore(t)
	awsPair(t, s, realID, realKey, "")
	ok := awsRequest(idFake+serviceFor, "host;x-amz-date")
	raw := func(value string) httphead.Header {
		return httphead.Header{ok[0], {Name: "Authorization", Value: hmacAlgorithm + value}}
	}
	const cred, headers, sig = "Credential=" + idFake + serviceFor, "SignedHeaders=host;x-amz-date", "Signature=00"
	for _, tc := range []struct {
		name, why string
		header    httphead.Header
	}{
		{"three parts", "scope", awsRequest(idFake+"/20150830/us-east-1", "host;x-amz-date")},
		{"six parts", "scope", awsRequest(idFake+serviceFor+"/x", "host;x-amz-date")},
		{"no scope", "scope", awsRequest(idFake, "host;x-amz-date")},
		{"empty region", "scope", awsRequest(idFake+"/20150830//service/aws4_request", "host;x-amz-date")},
		{"other end", "scope", awsRequest(idFake+"/20150830/us-east-1/service/aws5_request", "host;x-amz-date")},
		{"date", "scope", awsRequest(idFake+"/2015-8-30/us-east-1/service/aws4_request", "host;x-amz-date")},
		{"no SignedHeaders", "each once", raw(" " + cred + ", " + sig)},
		{"empty SignedHeaders", "each once", raw(" " + cred + ", SignedHeaders=, " + sig)},
		{"no Signature", "each once", raw(" " + cred + ", " + headers)},
		{"two credentials", "each once", raw(" " + cred + ", Credential=AKIAREAL" + serviceFor + ", " + headers + ", " + sig)},
		{"two credentials, ours last", "each once", raw(" Credential=AKIAREAL" + serviceFor + ", " + cred + ", " + headers + ", " + sig)},
		{"two header sets", "each once", raw(" " + cred + ", " + headers + ", " + headers + ", " + sig)},
		{"two signatures", "each once", raw(" " + cred + ", " + headers + ", " + sig + ", " + sig)},
		{"unknown parameter", "each once", raw(" " + cred + ", " + headers + ", " + sig + ", Extra=1")},
		{"no blank", "each once", raw(cred + ", " + headers + ", " + sig)},
		{"no blank, another first", "each once", raw(sig + ", " + headers + ", " + cred)},
		{"no name", "list of header names", awsRequest(idFake+serviceFor, "host;;x-amz-date")},
		{"no token", "list of header names", awsRequest(idFake+serviceFor, "host;x amz date")},
		{"no date", "x-amz-date", ok[1:]},
		{"two dates", "x-amz-date", append(httphead.Header{ok[0]}, ok...)},
		{"malformed date", "x-amz-date", httphead.Header{{Name: "X-Amz-Date", Value: "2015-08-30T12:36:00Z"}, ok[1]}},
		{"two hashes", contentHash, awsRequest(idFake+serviceFor, "host;x-amz-date", httphead.Field{Name: contentHash, Value: unsignedPayload},
			httphead.Field{Name: contentHash, Value: emptyHash})},
		{"signed header absent", "header range", awsRequest(idFake+serviceFor, "host;range;x-amz-date")},
		{"signed token absent", "header x-amz-security-token", awsRequest(idFake+serviceFor, "host;x-amz-date;x-amz-security-token")},
		{"hop-by-hop", "header te", awsRequest(idFake+serviceFor, "host;te;x-amz-date", httphead.Field{Name: "TE", Value: "trailers"})},
		{"expect", "header expect", awsRequest(idFake+serviceFor, "Expect;host;x-amz-date", httphead.Field{Name: "Expect", Value: "100-continue"})},
		{"no host signed", "does not cover the header host", awsRequest(idFake+serviceFor, "x-amz-date")},
		{"the signature itself", "header authorization", awsRequest(idFake+serviceFor, "authorization;host;x-amz-date")},
	} {
		g, refused := at(t, s, awsHost).Plan("GET", "/", tc.header, awsHost, SigV4Policy{true, true, true})
		if g != nil || refused == nil {
			t.Errorf("%s: %v, %v", tc.name, g, refused)
			continue
		}
		if !strings.HasPrefix(refused.Reason, "AWS SigV4 request uses a masked credential but cannot be re-signed") ||
			!strings.Contains(refused.Reason, tc.why) || strings.Contains(refused.Reason, "fake_value") {
			t.Errorf("%s: %q", tc.name, refused.Reason)
		}
	}
}

// TestCRED30_NoOracleForPresigned: a request that is signed in its header gets no signature that a presigned request could use. A
// server that quotes what it was sent would hand it to the command, valid for days.
func TestCRED30_NoOracleForPresigned(t *testing.T) {
	s := newStore(t)
	awsPair(t, s, realID, realKey, "")
	h := awsRequest(idFake+serviceFor, "host", httphead.Field{Name: contentHash, Value: unsignedPayload})
	for _, query := range []string{
		"X-Amz-Algorithm=AWS4-HMAC-SHA256", "list-type=2&X-Amz-Expires=604800", "x-amz-signedheaders=host", "X%2dAmz%2DCredential=a",
		"X-Amz-Date=20300101T000000Z", "X-Amz-Security-Token=", "X-Amz-Signature", "a=b&%58-amz-date",
	} {
		g, refused := at(t, s, awsHost).Plan("GET", "/b/k?"+query, h, awsHost, SigV4Policy{true, true, true})
		if g != nil || refused == nil || !strings.Contains(refused.Reason, "belongs to presigned requests") {
			t.Errorf("%s: %v, %v", query, g, refused)
		}
	}
	for _, query := range []string{"", "X-Amz-Meta=1", "prefix=X-Amz-Date", "x-id=GetObject&x-amz-checksum-mode=ENABLED"} {
		if g, refused := at(t, s, awsHost).Plan("GET", "/b/k?"+query, h, awsHost, SigV4Policy{}); g == nil || refused != nil {
			t.Errorf("%s: %v, %v", query, g, refused)
		}
	}
}

func TestCRED31_SyntaxThatPasses(t *testing.T) {
	s := newStore(t)
	awsPair(t, s, realID, realKey, "")
	const cred, sig = "Credential=" + idFake + serviceFor, "Signature=00"
	want := ""
	for _, value := range []string{
		" " + cred + ", SignedHeaders=host;x-amz-date, " + sig,
		" " + cred + ",SignedHeaders=host;x-amz-date," + sig,
		" \t" + sig + " , SignedHeaders=host;x-amz-date , " + cred,
		" " + cred + ", SignedHeaders=X-Amz-Date;Host;host, " + sig,
	} {
		h := httphead.Header{{Name: "x-amz-date", Value: amzDate}, {Name: "Authorization", Value: hmacAlgorithm + value}}
		got, _ := resign(t, at(t, s, awsHost), "GET", "/", awsHost, h, "").Get("Authorization")
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

func TestCRED32_Token(t *testing.T) {
	s := newStore(t)
	p := awsPair(t, s, realID, realKey, realToken)
	with := awsRequest(idFake+serviceFor, "host;x-amz-date;x-amz-security-token", httphead.Field{Name: "x-amz-security-token", Value: sessFake},
		httphead.Field{Name: "X-Amz-Security-Token", Value: "second"}, httphead.Field{Name: "X-Last", Value: "l"})
	without := awsRequest(idFake+serviceFor, "host;x-amz-date", httphead.Field{Name: "X-Last", Value: "l"})
	first := resign(t, at(t, s, awsHost), "GET", "/", awsHost, with, "")
	second := resign(t, at(t, s, awsHost), "GET", "/", awsHost, without, "")
	a, _ := first.Get("Authorization")
	b, _ := second.Get("Authorization")
	if a != b || !strings.Contains(a, "SignedHeaders=host;x-amz-date;x-amz-security-token,") {
		t.Errorf("%q, %q", a, b)
	}
	names := func(h httphead.Header) (list []string) {
		for _, f := range h {
			list = append(list, f.Name)
		}
		return list
	}
	if diff := cmp.Diff([]string{"X-Amz-Date", "Authorization", "x-amz-security-token", "X-Last"}, names(first)); diff != "" {
		t.Error(diff)
	}
	if value, n := second.Get(securityToken); value != realToken || n != 1 {
		t.Errorf("%d tokens, %q", n, value)
	}
	// A token whose own hosts do not hold this one never goes there (CRED-21).
	p.token.hosts = nil
	s.byHost, s.lists = nil, nil
	if g, refused := at(t, s, awsHost).Plan("GET", "/", without, awsHost, SigV4Policy{}); g != nil || refused == nil ||
		!strings.Contains(refused.Reason, "AWS_SESSION_TOKEN") {
		t.Errorf("%v, %v", g, refused)
	}
}

// TestCRED32_AfterSubstitution: what is signed is what goes out, also where it was masked, and the Host that goes out.
func TestCRED32_AfterSubstitution(t *testing.T) {
	s := newStore(t)
	awsPair(t, s, realID, realKey, "")
	plant(t, s, "SSE", otherFake, "customer-key", "*.amazonaws.com")
	sign := func(value string) string {
		h := awsRequest(idFake+serviceFor, "host;x-amz-date;x-key", httphead.Field{Name: "X-Key", Value: value},
			httphead.Field{Name: "Host", Value: "ignored.example"})
		return signatureOf(t, resign(t, at(t, s, awsHost), "GET", "/", awsHost, h, ""))
	}
	if a, b := sign(otherFake), sign("customer-key"); a != b {
		t.Errorf("%s for the fake, %s for the value", a, b)
	}
	h := awsRequest(idFake+serviceFor, "host;x-amz-date")
	if a, b := resign(t, at(t, s, awsHost), "GET", "/", awsHost, h, ""), resign(t, at(t, s, awsHost), "GET", "/", awsHost+":8443", h, ""); signatureOf(t, a) == signatureOf(t, b) {
		t.Error("the Host field is not signed")
	}
}

// FuzzPlan: whatever a client writes, the answer is one of three: none of ours, a refusal, or a signature that says what
// the client signed and holds nothing masked.
func FuzzPlan(f *testing.F) {
	f.Fuzz(func(t *testing.T, value, target, date, name, hash string) {
		if !httphead.ValidValue(value+date+hash) || !httphead.ValidName(name) {
			return
		}
		s := newStore(t)
		awsPair(t, s, realID, realKey, realToken)
		i := at(t, s, awsHost)
		h := httphead.Header{{Name: "Authorization", Value: value}, {Name: "X-Amz-Date", Value: date}, {Name: name, Value: hash}}
		g, refused := i.Plan("GET", target, h, awsHost, SigV4Policy{})
		switch {
		case g != nil && refused != nil:
			t.Fatal("both a plan and a refusal")
		case g == nil:
			if refused != nil && (refused.Reason == "" || strings.Contains(refused.Reason, realID)) {
				t.Errorf("%q", refused.Reason)
			}
			return
		}
		out, err := i.Header(h)
		if err != nil {
			t.Fatal(err)
		}
		g.SetLength(0)
		signed, refused := g.Sign(out, nil)
		if refused != nil {
			t.Fatalf("%+v", refused)
		}
		got, n := signed.Get("Authorization")
		again := parseAuthorization(strings.TrimPrefix(got, hmacAlgorithm))
		scope, ok := parseScope(again.credential)
		if n != 1 || again.malformed || !ok || scope != g.scope || again.keys[0] != realID || strings.Contains(got, realKey) ||
			!slices.IsSorted(strings.Split(again.signedHeaders, ";")) || !strings.Contains(";"+again.signedHeaders+";", ";"+securityToken+";") {
			t.Errorf("%q became %q", value, got)
		}
		if token, n := signed.Get(securityToken); n != 1 || token != realToken {
			t.Errorf("%d tokens, %q", n, token)
		}
	})
}

func BenchmarkSign(b *testing.B) {
	s := newStore(b)
	awsPair(b, s, realID, realKey, realToken)
	h := awsRequest(idFake+serviceFor, "host;x-amz-content-sha256;x-amz-date", httphead.Field{Name: contentHash, Value: emptyHash})
	host := canonical(b, awsHost)
	b.ReportAllocs()
	for b.Loop() {
		i := s.At(host)
		g, _ := i.Plan("GET", "/bucket/key?list-type=2&prefix=a", h, awsHost, SigV4Policy{})
		out, err := i.Header(h)
		if err != nil {
			b.Fatal(err)
		}
		if _, refused := g.Sign(out, nil); refused != nil {
			b.Fatal(refused)
		}
	}
}

// BenchmarkHeader is the common case: fields without a sentinel, at a host where something may be injected.
func BenchmarkHeader(b *testing.B) {
	s := newStore(b)
	plant(b, s, "A", tokenFake, "v", "h.example")
	plant(b, s, "J", jwtFake, "v", "h.example")
	host := canonical(b, "h.example")
	h := httphead.Header{{Name: "Host", Value: "h.example"}, {Name: "User-Agent", Value: "curl/8.5.0"}, {Name: "Accept", Value: "*/*"},
		{Name: "Content-Type", Value: "application/json; charset=utf-8"}, {Name: "Authorization", Value: "Basic dXNlcjpwYXNzd29yZA=="},
		{Name: "X-Request-Id", Value: "0b9d0a52-5b1e-4c55-9b07-6a6a5f2f5b1e"}, {Name: "Accept-Encoding", Value: "gzip, deflate, br"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.At(host).Header(h); err != nil {
			b.Fatal(err)
		}
	}
}
