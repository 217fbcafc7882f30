package credential

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// sdkRequest is a request to be signed by srt and by the AWS SDK.
type sdkRequest struct {
	method, path, query, host, service, body string
	fields                                   httphead.Header // signed, besides host and x-amz-date
	token                                    string
	signsLength                              bool
}

// sdkCannot tells why the SDK's signer is no judge of a request; empty: it is one.
func (r *sdkRequest) sdkCannot() string {
	for _, f := range r.fields {
		name := strings.ToLower(f.Name)
		if slices.Contains([]string{"user-agent", "x-amzn-trace-id", "x-amz-date", "host", contentLength}, name) || slices.Contains(neverForwarded, name) {
			return "it leaves some headers out, and sets others itself"
		}
		if strings.ContainsFunc(f.Value, func(c rune) bool { return c < ' ' || c > '~' }) {
			return "it takes a tab for no blank, and trims blanks beyond ASCII"
		}
	}
	if r.signsLength && r.body == "" {
		return "it signs no length of nothing"
	}
	return ""
}

var malformedEscape = regexp.MustCompile(`%([^0-9a-fA-F]|[0-9a-fA-F][^0-9a-fA-F]|.?$)`)

// sdkQuery is a query in which the SDK, which reads it as a form, finds the parameters of CRED-33.
func sdkQuery(query string) string {
	for malformedEscape.MatchString(query) {
		query = malformedEscape.ReplaceAllString(query, "%25$1")
	}
	return strings.NewReplacer("+", "%2B", ";", "%3B").Replace(query)
}

// sdkPath is a path that the SDK, which resolves nothing, encodes to that of CRED-33.
func sdkPath(p, service string) string {
	if service == "s3" {
		return p
	}
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// bySDK returns the Authorization field that the AWS SDK makes.
func (r *sdkRequest) bySDK(t testing.TB) string {
	t.Helper()
	req := &http.Request{
		Method: r.method, Host: r.host, Header: http.Header{},
		URL: &url.URL{Scheme: "https", Host: r.host, Opaque: "//" + r.host + sdkPath(r.path, r.service), RawQuery: sdkQuery(r.query)},
	}
	for _, f := range r.fields {
		value := f.Value
		if f.Is(contentHash) {
			value = hashHex([]byte(r.body))
		}
		req.Header.Add(f.Name, value)
	}
	if r.signsLength {
		req.ContentLength = int64(len(r.body))
	}
	when, err := time.Parse("20060102T150405Z", amzDate)
	if err != nil {
		t.Fatal(err)
	}
	credentials := aws.Credentials{AccessKeyID: realID, SecretAccessKey: realKey, SessionToken: r.token}
	err = v4.NewSigner().SignHTTP(context.Background(), credentials, req, hashHex([]byte(r.body)), r.service, "eu-central-1", when,
		func(o *v4.SignerOptions) { o.DisableURIPathEscaping = r.service == "s3" })
	if err != nil {
		t.Fatal(err)
	}
	return req.Header.Get("Authorization")
}

// bySRT returns the Authorization field that srt makes of a request that was signed with the fakes.
func (r *sdkRequest) bySRT(t testing.TB) string {
	t.Helper()
	s := newStore(t)
	awsPair(t, s, realID, realKey, r.token)
	names := []string{"host", "x-amz-date"}
	if r.signsLength {
		names = append(names, contentLength)
	}
	for _, f := range r.fields {
		names = append(names, strings.ToLower(f.Name))
	}
	h := append(awsRequest(idFake+"/20150830/eu-central-1/"+r.service+"/aws4_request", strings.Join(names, ";")), r.fields...)
	if r.token != "" && len(r.fields)%2 == 0 {
		h = append(h, httphead.Field{Name: "X-Amz-Security-Token", Value: sessFake})
	}
	target := r.path
	if r.query != "" {
		target += "?" + r.query
	}
	value, _ := resign(t, at(t, s, r.host), r.method, target, r.host, h, r.body).Get("Authorization")
	return value
}

// TestCRED33_DifferentialWithSDK: wherever the signer of the AWS SDK can serve, it signs what srt signs.
func TestCRED33_DifferentialWithSDK(t *testing.T) {
	fields := func(pairs ...string) (h httphead.Header) {
		for k := 0; k < len(pairs); k += 2 {
			h = append(h, httphead.Field{Name: pairs[k], Value: pairs[k+1]})
		}
		return h
	}
	for _, r := range []sdkRequest{
		{method: "GET", path: "/", service: "sts"},
		{method: "GET", path: "/", query: "Action=GetCallerIdentity&Version=2011-06-15", service: "sts", token: realToken},
		{method: "POST", path: "/", service: "dynamodb", body: `{"TableName":"t"}`, signsLength: true,
			fields: fields("Content-Type", "application/x-amz-json-1.0", "X-Amz-Target", "DynamoDB_20120810.GetItem")},
		{method: "PUT", path: "/a//b/../c%20d/€%zz", service: "s3", body: "content", token: realToken,
			fields: fields("X-Amz-Content-Sha256", "x", "Content-Md5", "a==", "X-Amz-Meta-A", "  b   c ")},
		{method: "GET", path: "/a//b/../c%20d/(e)*'!/", service: "ec2", query: "x=%zz&y=a+b&z;=;&&=&q"},
		{method: "GET", path: "/..", service: "ec2", query: "a=/&a=-&a-b=1&A=%7e%2d"},
		{method: "DELETE", path: "/2015-03-31/functions/arn%3Aaws%3Alambda", service: "lambda", fields: fields("X-Many", "a", "x-many", "b", "X-Many", "")},
	} {
		r.host = awsHost
		if why := r.sdkCannot(); why != "" {
			t.Errorf("%s %s: the SDK cannot serve, %s", r.method, r.path, why)
		}
		if got, want := r.bySRT(t), r.bySDK(t); got != want {
			t.Errorf("%s %s?%s:\n%s\nthe SDK has\n%s", r.method, r.path, r.query, got, want)
		}
	}
}

// FuzzSigV4: the same for random requests. What the proxy lets through and what makes a client sign at all are the only
// limits: a path that begins with "/", no bytes in the target that would end it, field names and values as they are parsed.
func FuzzSigV4(f *testing.F) {
	f.Fuzz(func(t *testing.T, method, p, query, name, value, second, body string, flags uint8) {
		r := sdkRequest{method: method, path: "/" + p, query: query, host: awsHost, service: "ec2", body: body, signsLength: flags&1 != 0}
		if flags&2 != 0 {
			r.service = "s3"
		}
		if flags&4 != 0 {
			r.token = realToken
		}
		if flags&8 != 0 {
			r.fields = append(r.fields, httphead.Field{Name: contentHash, Value: "x"})
		}
		outside := func(c rune) bool { return c <= ' ' || c > '~' || c == '#' }
		if !httphead.ValidName(method) || strings.ContainsFunc(p+query, outside) || strings.Contains(p, "?") {
			return
		}
		if httphead.ValidName(name) && httphead.ValidValue(value+second) && !strings.EqualFold(name, contentHash) &&
			!strings.EqualFold(name, securityToken) {
			r.fields = append(r.fields, httphead.Field{Name: name, Value: strings.Trim(value, " \t")})
			if flags&16 != 0 {
				r.fields = append(r.fields, httphead.Field{Name: strings.ToUpper(name), Value: strings.Trim(second, " \t")})
			}
		}
		if r.sdkCannot() != "" {
			return
		}
		if got, want := r.bySRT(t), r.bySDK(t); got != want {
			t.Errorf("%+v:\n%s\nthe SDK has\n%s", r, got, want)
		}
	})
}
