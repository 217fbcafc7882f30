package s3stand

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The examples of AWS's documents, whose keys are published to be used in examples.
var documented = Key{ID: "AKIAIOSFODNN7EXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}

const (
	emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	s3Scope     = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"
)

func authorize(scope, signed, signature string) string {
	return "Authorization: AWS4-HMAC-SHA256 Credential=" + scope + ",SignedHeaders=" + signed + ",Signature=" + signature
}

func read(t *testing.T, lines ...string) *http.Request {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.Join(lines, "\r\n") + "\r\n\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVerify_PublishedExamples(t *testing.T) {
	iam := Key{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	for _, test := range []struct {
		name, at, body string
		key            Key
		lines          []string
	}{
		{"an object", "20130524T000000Z", "", documented, []string{"GET /test.txt HTTP/1.1", "Host: examplebucket.s3.amazonaws.com",
			authorize(s3Scope, "host;range;x-amz-content-sha256;x-amz-date", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
			"Range: bytes=0-9", "x-amz-content-sha256: " + emptySHA256, "x-amz-date: 20130524T000000Z"}},
		{"put", "20130524T000000Z", "Welcome to Amazon S3.", documented, []string{"PUT /test%24file.text HTTP/1.1",
			"Host: examplebucket.s3.amazonaws.com", "Date: Fri, 24 May 2013 00:00:00 GMT",
			authorize(s3Scope, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
			"x-amz-storage-class: REDUCED_REDUNDANCY", "x-amz-date: 20130524T000000Z",
			"x-amz-content-sha256: 44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"}},
		{"lifecycle", "20130524T000000Z", "", documented, []string{"GET /?lifecycle HTTP/1.1", "Host: examplebucket.s3.amazonaws.com",
			authorize(s3Scope, "host;x-amz-content-sha256;x-amz-date", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
			"x-amz-date: 20130524T000000Z", "x-amz-content-sha256: " + emptySHA256}},
		{"list", "20130524T000000Z", "", documented, []string{"GET /?max-keys=2&prefix=J HTTP/1.1", "Host: examplebucket.s3.amazonaws.com",
			authorize(s3Scope, "host;x-amz-content-sha256;x-amz-date", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
			"x-amz-date: 20130524T000000Z", "x-amz-content-sha256: " + emptySHA256}},
		{"presigned", "20130524T000000Z", "", documented, []string{"GET /test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" +
			strings.ReplaceAll(s3Scope, "/", "%2F") + "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host" +
			"&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404 HTTP/1.1", "Host: examplebucket.s3.amazonaws.com"}},
		{"users", "20150830T123600Z", "", iam, []string{"GET /?Action=ListUsers&Version=2010-05-08 HTTP/1.1", "Host: iam.amazonaws.com",
			"Content-Type: application/x-www-form-urlencoded; charset=utf-8", "X-Amz-Date: 20150830T123600Z",
			authorize("AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request", "content-type;host;x-amz-date",
				"5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7")}},
	} {
		now, err := time.Parse(timeFormat, test.at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(read(t, test.lines...), []byte(test.body), test.key, now); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		// Nothing of it may change.
		other := test.key
		other.Secret += "x"
		refusals := map[string]*Fault{}
		_, refusals["SignatureDoesNotMatch key"] = Verify(read(t, test.lines...), []byte(test.body), other, now)
		changed := append([]string{strings.Replace(test.lines[0], " HTTP", "&x HTTP", 1)}, test.lines[1:]...)
		if !strings.Contains(changed[0], "?") {
			changed[0] = strings.Replace(changed[0], "&x", "x", 1)
		}
		_, refusals["SignatureDoesNotMatch target"] = Verify(read(t, changed...), []byte(test.body), test.key, now)
		if test.name != "presigned" {
			_, refusals["RequestTimeTooSkewed"] = Verify(read(t, test.lines...), []byte(test.body), test.key, now.Add(16*time.Minute))
			_, refusals["AccessDenied header"] = Verify(read(t, append(test.lines, "X-Amz-Acl: private")...), []byte(test.body), test.key, now)
		} else {
			_, refusals["AccessDenied expired"] = Verify(read(t, test.lines...), nil, test.key, now.Add(25*time.Hour))
		}
		for what, err := range refusals {
			want, _, _ := strings.Cut(what, " ")
			if err == nil || err.Code != want {
				t.Errorf("%s: %s: %v", test.name, what, err)
			}
		}
	}
}

func TestCanonicalURI(t *testing.T) {
	for _, test := range [][3]string{
		{"s3", "/a//b/../c%20d%2B", "/a//b/../c%20d%2B"}, {"s3", "/%7e", "/~"},
		{"ec2", "/a//b/../c/", "/a/c/"}, {"ec2", "/a%20b", "/a%2520b"}, {"ec2", "/", "/"}, {"ec2", "/../", "/"},
	} {
		if got := canonicalURI(test[1], test[0]); got != test[2] {
			t.Errorf("%s %s: %s, want %s", test[0], test[1], got, test[2])
		}
	}
}
