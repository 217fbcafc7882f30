package credential

import (
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

const (
	idFake     = "fake_value_00000000-0000-4000-8000-0000000000a1"
	keyFake    = "fake_value_00000000-0000-4000-8000-0000000000a2"
	sessFake   = "fake_value_00000000-0000-4000-8000-0000000000a3"
	realID     = "AKIDEXAMPLE"
	realKey    = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	realToken  = "IQoJb3JpZ2luX2VjE//////////wEaCXVzLWVhc3QtMSJHMEUCIQD="
	amzDate    = "20150830T123600Z"
	awsHost    = "example.amazonaws.com"
	emptyHash  = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	serviceFor = "/20150830/us-east-1/service/aws4_request"
)

// awsPair is a masked key that may go to *.amazonaws.com. token empty: without one.
func awsPair(t testing.TB, s *Store, id, key, token string) pair {
	t.Helper()
	hosts := []string{"*.amazonaws.com"}
	p := pair{id: plant(t, s, "AWS_ACCESS_KEY_ID", idFake, id, hosts...)}
	// The host list of the key id decides where a request is signed again (CRED-28), that of the secret does not.
	p.key = plant(t, s, "AWS_SECRET_ACCESS_KEY", keyFake, key, "unused.example")
	if token != "" {
		p.token = plant(t, s, "AWS_SESSION_TOKEN", sessFake, token, hosts...)
	}
	s.mu.Lock()
	s.pairs = []pair{p}
	s.mu.Unlock()
	return p
}

// authorization is the field of a request that a client signed with the fakes.
func authorization(credential, signed string) httphead.Field {
	return httphead.Field{Name: "Authorization", Value: hmacAlgorithm + " Credential=" + credential + ", SignedHeaders=" + signed + ", Signature=00"}
}

// resign plans, substitutes and signs as the proxy does, and returns the fields that go out.
func resign(t testing.TB, i *Injection, method, target, host string, h httphead.Header, body string) httphead.Header {
	t.Helper()
	g, refused := i.Plan(method, target, h, host, SigV4Policy{})
	if refused != nil || g == nil {
		t.Fatalf("%s %s: plan %v, refused %v", method, target, g, refused)
	}
	out, err := i.Header(h)
	if err != nil {
		t.Fatal(err)
	}
	signed, refused := g.Sign(out, []byte(body))
	if refused != nil {
		t.Fatalf("%s %s: refused %v", method, target, refused)
	}
	return signed
}

func signatureOf(t testing.TB, h httphead.Header) string {
	t.Helper()
	value, n := h.Get("Authorization")
	_, sig, ok := strings.Cut(value, "Signature=")
	if n != 1 || !ok {
		t.Fatalf("%d fields, %q", n, value)
	}
	return sig
}

// TestCRED32_Case32 is the first example that AWS publishes.
func TestCRED32_Case32(t *testing.T) {
	s := newStore(t)
	awsPair(t, s, realID, realKey, "")
	h := httphead.Header{{Name: "X-Amz-Date", Value: amzDate}, authorization(idFake+serviceFor, "host;x-amz-date")}
	got := resign(t, at(t, s, awsHost), "GET", "/", awsHost, h, "")
	const want = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, " +
		"Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
	if value, _ := got.Get("authorization"); value != want {
		t.Errorf("%q", value)
	}
	if len(got) != 2 || h[1].Value == got[1].Value {
		t.Errorf("fields %v from %v", got, h)
	}
}

// TestCRED33_PublishedExamples are the other examples in AWS's documents whose signatures it tells: a call of IAM, and
// four of S3.
func TestCRED33_PublishedExamples(t *testing.T) {
	const (
		iamHost, s3Host = "iam.amazonaws.com", "examplebucket.s3.amazonaws.com"
		iamScope        = "/20150830/us-east-1/iam/aws4_request"
		s3Scope         = "/20130524/us-east-1/s3/aws4_request"
		s3Key           = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	)
	s3Date := httphead.Field{Name: "x-amz-date", Value: "20130524T000000Z"}
	s3Hash := httphead.Field{Name: "x-amz-content-sha256", Value: "replaced"}
	for _, tc := range []struct {
		name, method, target, host, key, body, want string
		header                                      httphead.Header
	}{
		{"IAM", "GET", "/?Action=ListUsers&Version=2010-05-08", iamHost, "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "",
			"5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7", httphead.Header{
				{Name: "Content-Type", Value: "application/x-www-form-urlencoded; charset=utf-8"}, {Name: "X-Amz-Date", Value: amzDate},
				authorization(idFake+iamScope, "content-type;host;x-amz-date")}},
		{"S3 GET object", "GET", "/test.txt", s3Host, s3Key, "", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
			httphead.Header{{Name: "Range", Value: "bytes=0-9"}, s3Hash, s3Date,
				authorization(idFake+s3Scope, "host;range;x-amz-content-sha256;x-amz-date")}},
		{"S3 PUT object", "PUT", "/test%24file.text", s3Host, s3Key, "Welcome to Amazon S3.",
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd", httphead.Header{
				{Name: "Date", Value: "Fri, 24 May 2013 00:00:00 GMT"}, s3Hash, s3Date, {Name: "x-amz-storage-class", Value: "REDUCED_REDUNDANCY"},
				authorization(idFake+s3Scope, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class")}},
		{"S3 GET lifecycle", "GET", "/?lifecycle", s3Host, s3Key, "", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
			httphead.Header{s3Hash, s3Date, authorization(idFake+s3Scope, "host;x-amz-content-sha256;x-amz-date")}},
		{"S3 list", "GET", "/?max-keys=2&prefix=J", s3Host, s3Key, "", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
			httphead.Header{s3Hash, s3Date, authorization(idFake+s3Scope, "host;x-amz-content-sha256;x-amz-date")}},
	} {
		s := newStore(t)
		id := "AKIAIOSFODNN7EXAMPLE"
		if tc.host == iamHost {
			id = realID
		}
		awsPair(t, s, id, tc.key, "")
		if got := signatureOf(t, resign(t, at(t, s, tc.host), tc.method, tc.target, tc.host, tc.header, tc.body)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestCRED33_Path(t *testing.T) {
	for _, tc := range []struct{ service, path, want string }{
		{"ec2", "/a%20b", "/a%2520b"}, // case 33
		{"s3", "/a%20b", "/a%20b"},
		{"ec2", "/a//b/../c/", "/a/c/"},
		{"s3", "/a//b/../c/", "/a//b/../c/"},
		{"s3express", "/a//b", "/a//b"},
		{"s3tables", "/a//b", "/a/b"},
		{"ec2", "", "/"},
		{"s3", "", "/"},
		{"ec2", "/", "/"},
		{"ec2", "//", "/"},
		{"ec2", "/..", "/"},
		{"ec2", "/../../a", "/a"},
		{"ec2", "/a/..", "/"},
		{"ec2", "/a/../", "/"},
		{"ec2", "/./a/.", "/a"},
		{"ec2", "/a/./", "/a/"},
		{"ec2", "/a/%2e%2e/b", "/a/%252e%252e/b"},
		{"ec2", "/-_.~aZ09", "/-_.~aZ09"},
		{"ec2", "/a:b@c+d=e,f;g!h*i'(j)", "/a%3Ab%40c%2Bd%3De%2Cf%3Bg%21h%2Ai%27%28j%29"},
		{"ec2", "/a%2Fb", "/a%252Fb"},
	} {
		if got := canonicalPath(tc.path, tc.service); got != tc.want {
			t.Errorf("%s %q: %q, want %q", tc.service, tc.path, got, tc.want)
		}
	}
}

func TestCRED33_Query(t *testing.T) {
	for _, tc := range []struct{ query, want string }{
		{"b=2&a=1&a=0&c", "a=0&a=1&b=2&c="}, // case 33
		{"", ""},
		{"&&a&", "a="},
		{"=", "="},
		{"a=b=c", "a=b%3Dc"},
		{"a+b=c+d", "a%2Bb=c%2Bd"},
		{"a%20b=c%20d", "a%20b=c%20d"},
		{"x=%7e%2d%41", "x=~-A"},
		{"x=%zz&y=%4&z=%", "x=%25zz&y=%254&z=%25"},
		{"x=%e2%82%ac", "x=%E2%82%AC"},
		{"x=%00%ff", "x=%00%FF"},
		{"a=;/?:@$,", "a=%3B%2F%3F%3A%40%24%2C"},
		// By the encoded forms: "%2F" comes before "-".
		{"a=-&a=/", "a=%2F&a=-"},
		{"a-b=1&a=2", "a=2&a-b=1"},
		{"A=1&a=2&B=3", "A=1&B=3&a=2"},
	} {
		if got := canonicalQuery(tc.query); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.query, got, tc.want)
		}
	}
}

func TestCRED33_CanonicalRequest(t *testing.T) {
	c := canonicalRequest{method: "POST", path: "/p", query: "a=b", host: "h.example:8443", length: "7", payloadHash: "hash",
		signed: []string{"content-length", "host", "user-agent", "x-many", "x-none"},
		header: httphead.Header{
			{Name: "X-Many", Value: "  one \t two  "}, {Name: "User-Agent", Value: "agent/1"}, {Name: "Not-Signed", Value: "x"},
			{Name: "x-many", Value: ""}, {Name: "X-MANY", Value: "\"a   b\""}, {Name: "Content-Length", Value: "not this one"}}}
	var out strings.Builder
	c.writeTo(&out)
	const want = "POST\n/p\na=b\ncontent-length:7\nhost:h.example:8443\nuser-agent:agent/1\nx-many:one two,,\"a b\"\nx-none:\n\n" +
		"content-length;host;user-agent;x-many;x-none\nhash"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
