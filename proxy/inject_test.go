package proxy

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/proxy/credential"
)

const secretToken = "ghp_0123456789ab" // 16 bytes (case 22)

// injecting is a terminating harness with masked variables.
func injecting(t testing.TB, o *origin, values map[string]string, change ...func(*Options)) (*inspecting, map[string]string, *logBuffer) {
	t.Helper()
	store, fakes := masking(t, values)
	log := &logBuffer{}
	h := terminating(t, o, append([]func(*Options){func(opts *Options) {
		opts.Credentials, opts.Logger = store, log.logger()
	}}, change...)...)
	t.Cleanup(func() { // CRED-35, case 36
		said := log.String() + strings.Join(h.lines(), "\n")
		for name, value := range values {
			if strings.Contains(said, value) {
				t.Errorf("the value of %s is in a log or violation", name)
			}
		}
	})
	return h, fakes, log
}

func TestCRED21_case22_Headers(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h, fakes, log := injecting(t, o, map[string]string{"GH_TOKEN": secretToken})
	fake := fakes["GH_TOKEN"]
	if len(fake) != 47 {
		t.Errorf("a fake of %d bytes", len(fake))
	}
	c := h.shake("other.test", func(conf *tlsConfig) { conf.InsecureSkipVerify = true }) // the server name has no say
	status, _, _ := c.ask("GET /x?t=%s HTTP/1.1\r\nHost: evil.test\r\nAuthorization: Bearer %s\r\nX-%s: 1\r\nX-Two: %s,%s\r\nX-Basic: Basic %s\r\nConnection: x-gone\r\nX-Gone: %s\r\n\r\n",
		fake, fake, fake, fake, fake, fake, fake)
	if status != 200 {
		t.Fatal(status)
	}
	want := fmt.Sprintf("GET /x?t=%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nX-%s: 1\r\nX-Two: %s,%s\r\nX-Basic: Basic %s\r\n\r\n",
		fake, h.target, secretToken, fake, secretToken, secretToken, secretToken)
	if got := o.got(); len(got) != 1 || got[0] != want {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if !strings.Contains(log.String(), "GH_TOKEN") { // CRED-22: said by name
		t.Error("nothing is said of the sentinel in the target")
	}
}

// A stand-in that goes to a host which its entry does not name stays one, and the debug log says so, in Basic credentials too;
// of one that was replaced nothing is said.
func TestCRED21_TheLogTellsOfWhatIsLeft(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h, fakes, log := injecting(t, o, map[string]string{"GH_TOKEN": secretToken})
	_, others := masking(t, map[string]string{"OTHER": "other-value-16b."}, "elsewhere.test")
	c := h.shake("name.test")
	if status, _, _ := c.ask("GET / HTTP/1.1\r\nHost: name.test\r\nA: %s\r\n\r\n", fakes["GH_TOKEN"]); status != 200 || strings.Contains(log.String(), "stand-in") {
		t.Errorf("%d, the log: %q", status, log)
	}
	basic := base64.StdEncoding.EncodeToString([]byte("u:" + others["OTHER"]))
	c.ask("GET / HTTP/1.1\r\nHost: name.test\r\nA: %s\r\nB: %s\r\nAuthorization: Basic %s\r\n\r\n", fakes["GH_TOKEN"], others["OTHER"], basic)
	if said := log.String(); !strings.Contains(said, "fields=\"[B Authorization]\"") || strings.Contains(said, others["OTHER"]) {
		t.Errorf("the log: %q", said)
	}
}

func TestCRED23_case23_Basic(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h, fakes, _ := injecting(t, o, map[string]string{"GH_TOKEN": secretToken})
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte("u:" + s)) }
	h.shake("name.test").ask("GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic %s\r\n\r\n", encode(fakes["GH_TOKEN"]))
	if got := o.got(); len(got) != 1 || !strings.Contains(got[0], "Authorization: Basic "+encode(secretToken)+"\r\n") {
		t.Errorf("%q", got)
	}
}

func TestCRED20_NowhereElse(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	store, fakes := masking(t, map[string]string{"GH_TOKEN": secretToken}, "elsewhere.test")
	h := terminating(t, o, func(opts *Options) { opts.Credentials = store })
	h.shake("elsewhere.test").ask("GET / HTTP/1.1\r\nHost: elsewhere.test\r\nA: %s\r\n\r\n", fakes["GH_TOKEN"]) // CRED-21: neither Host nor SNI
	if got := o.got(); len(got) != 1 || !strings.Contains(got[0], "A: "+fakes["GH_TOKEN"]+"\r\n") {
		t.Errorf("%q", got)
	}
	plain := serveEach(t, echoHead)
	for _, allowed := range []bool{false, true} {
		h, fakes, _ := injecting(t, o, map[string]string{"GH_TOKEN": secretToken}, func(opts *Options) { opts.AllowPlaintextInject = allowed })
		p := h.dial()
		p.send("GET http://name.test:%d/ HTTP/1.1\r\nHost: x\r\nA: %s\r\nConnection: close\r\n%s\r\n", plain.Port, fakes["GH_TOKEN"], auth)
		if got := p.rest(); strings.Contains(got, "A: "+secretToken) != allowed {
			t.Errorf("%v: %q", allowed, got)
		}
	}
}

func TestCRED24_ControlCharacters(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h, fakes, _ := injecting(t, o, map[string]string{"BAD": "to\r\nX-Injected: 1"})
	status, header, body := h.shake("name.test").ask("GET /a?b HTTP/1.1\r\nHost: x\r\nA: %s\r\n\r\n", fakes["BAD"])
	if status != 403 || header.Get("X-Proxy-Error") != "blocked-by-sandbox-runtime" ||
		body != "a masked credential holds a control character and cannot be sent in a header\n" {
		t.Errorf("%d %v %q", status, header, body)
	}
	o.untouched()
	h.wantLines(fmt.Sprintf("deny http-request GET https://%s/a?… (a masked credential holds a control character and cannot be sent in a header)", h.target))
}

func TestCRED25_case24_BodiesAtEverySplit(t *testing.T) {
	o := serveOrigin(t, "name.test", func(_ *http.Request, body string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	})
	h, fakes, _ := injecting(t, o, map[string]string{"GH_TOKEN": secretToken})
	fake := fakes["GH_TOKEN"]
	c := h.shake("name.test")
	for at := 1; at < len(fake); at++ {
		_, _, got := c.ask("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\na%s\r\n%x\r\n%sz\r\n0\r\n\r\n",
			at+1, fake[:at], len(fake)-at+1, fake[at:])
		if got != "a"+secretToken+"z" {
			t.Errorf("%d: %q", at, got)
		}
	}
	_, _, got := c.ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(fake), fake)
	if got != fake {
		t.Errorf("encoded: %q", got)
	}
}

func TestCRED26_case25_Framing(t *testing.T) {
	equal := strings.Repeat("e", 47)
	for _, tc := range []struct {
		name, value string
		size        int
		framing     string // the field upstream; %d is the length of the body that goes out
	}{
		{"equal length", equal, 100, "Content-Length: %d\r\n"},
		{"equal length, long", equal, 5 << 20, "Content-Length: %d\r\n"},
		{"shorter", secretToken, 100, "Content-Length: %d\r\n"},
		{"shorter, at the limit", secretToken, 1 << 20, "Content-Length: %d\r\n"},
		{"shorter, 5 MiB", secretToken, 5 << 20, "Transfer-Encoding: chunked\r\n"},
		{"a long value, whose fake is as long", strings.Repeat("l", 4000), 1 << 20, "Content-Length: %d\r\n"},
		{"empty", secretToken, 0, "Content-Length: 0\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got string
			o := serveOrigin(t, "name.test", func(_ *http.Request, body string) string { got = body; return plainOK })
			h, fakes, _ := injecting(t, o, map[string]string{"T": tc.value})
			body := strings.Repeat("x", max(tc.size-len(fakes["T"]), 0))
			if tc.size > 0 {
				body += fakes["T"]
			}
			c := h.shake("name.test")
			for _, expect := range []string{"", "Expect: 100-continue\r\n"} {
				c.send("PUT / HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n", expect, len(body))
				if expect != "" && tc.size > 0 {
					c.want("HTTP/1.1 100 Continue\r\n\r\n")
				}
				if status, _, _ := c.ask("%s", body); status != 200 {
					t.Fatal(status)
				}
				want := strings.Replace(body, fakes["T"], tc.value, 1)
				field := tc.framing
				if strings.Contains(field, "%d") {
					field = fmt.Sprintf(field, len(want))
				}
				last := o.got()
				head, _, _ := strings.Cut(last[len(last)-1], "\r\n\r\n")
				if got != want || !strings.Contains(head+"\r\n", field) || strings.Contains(head, "Expect") {
					t.Errorf("%d bytes, not %d; head %q", len(got), len(want), head)
				}
			}
		})
	}
}

func TestREQ11_case21_TRACE(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h, fakes, _ := injecting(t, o, map[string]string{"GH_TOKEN": secretToken})
	status, _, body := h.shake("name.test").ask("TRACE / HTTP/1.1\r\nHost: x\r\nA: %s\r\n\r\n", fakes["GH_TOKEN"])
	if status != 405 || body != "the TRACE method is not forwarded\n" {
		t.Errorf("%d %q", status, body)
	}
	o.untouched()
}

// awsHead is a request that a masked key has signed. Only its shape counts: the signature is made anew.
func awsHead(method, id, more string) string {
	return fmt.Sprintf("%s /bucket/key HTTP/1.1\r\nHost: x\r\nX-Amz-Date: 20150830T123600Z\r\nAuthorization: AWS4-HMAC-SHA256 "+
		"Credential=%s/20150830/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=%064d\r\n%s\r\n", method, id, 0, more)
}

var awsValues = map[string]string{
	"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
}

func TestCRED32_case34_AWSRequestsAreSignedAgain(t *testing.T) {
	var got string
	o := serveOrigin(t, "name.test", func(_ *http.Request, body string) string { got = body; return plainOK })
	h, fakes, _ := injecting(t, o, awsValues)
	id := fakes["AWS_ACCESS_KEY_ID"]
	c := h.shake("name.test")
	for _, tc := range []struct{ name, more, body, framing string }{
		{"no body", "", "", ""},
		{"body", "Content-Length: 5\r\n", "hello", "Content-Length: 5\r\n"},
		{"chunked body", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n", "Content-Length: 5\r\n"},
		{"unsigned", "x-amz-content-sha256: UNSIGNED-PAYLOAD\r\nContent-Length: 5\r\n", "hello", "Content-Length: 5\r\n"},
		{"unsigned with its sentinel", fmt.Sprintf("x-amz-content-sha256: UNSIGNED-PAYLOAD\r\nContent-Length: %d\r\n", len(id)), id,
			fmt.Sprintf("Content-Length: %d\r\n", len(id))}, // CRED-34
	} {
		got = ""
		status, _, body := c.ask("%s%s", awsHead("PUT", id, tc.more), tc.body)
		last := o.got()
		if status != 200 || len(last) == 0 {
			t.Fatalf("%s: %d %q", tc.name, status, body)
		}
		head := last[len(last)-1]
		if !strings.Contains(head, "Credential=AKIDEXAMPLE/20150830/us-east-1/s3/aws4_request, ") || strings.Contains(head, strings.Repeat("0", 64)) ||
			!strings.Contains(head, tc.framing) || strings.Contains(tc.more, "UNSIGNED") && got != tc.body {
			t.Errorf("%s: %q", tc.name, head)
		}
	}
	h.wantLines()
}

func TestCRED30_case34_ShapesThatCannotBeSigned(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h, fakes, _ := injecting(t, o, awsValues)
	streaming := awsHead("PUT", fakes["AWS_ACCESS_KEY_ID"], "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\n")
	status, _, body := h.shake("name.test").ask("%s", streaming)
	if status != 403 || !strings.HasPrefix(body, "AWS SigV4 streaming request uses a masked credential") {
		t.Errorf("%d %q", status, body)
	}
	o.untouched()
	lines := h.lines()
	if len(lines) != 1 || !strings.HasPrefix(lines[0], fmt.Sprintf("deny http-request PUT https://%s/bucket/key (AWS SigV4 streaming", h.target)) {
		t.Errorf("%q", lines)
	}
	c := h.shake("name.test")
	h.update(func(r *Rules) { r.SigV4.Streaming = true }) // CRED-37: at once
	if status, _, _ := c.ask("%s", streaming); status != 200 {
		t.Error(status)
	}
	unmasked := awsHead("PUT", "AKIAREALUNMASKED0000", "")
	if status, _, _ := c.ask("%s", unmasked); status != 200 {
		t.Error(status)
	}
	if got := o.got(); !strings.Contains(got[1], strings.Repeat("0", 64)) {
		t.Errorf("a key that is not masked: %q", got[1])
	}
}

// TLS-45: a signed body holds as much room as it needs, so that clients that wait for a slow answer keep nobody from asking.
func TestTLS45_RoomForSignedBodies(t *testing.T) {
	var h *inspecting
	held := make(chan int64, 2)
	o := serveOrigin(t, "name.test", func(*http.Request, string) string {
		free := int64(0)
		for ; h.server.collected.TryAcquire(1); free++ {
		}
		h.server.collected.Release(free)
		held <- 100 - free
		return plainOK
	})
	var fakes map[string]string
	h, fakes, _ = injecting(t, o, awsValues)
	id := fakes["AWS_ACCESS_KEY_ID"]
	if !h.server.collected.TryAcquire(maxCollected - 100) {
		t.Fatal("room is taken before there is a request")
	}
	c := h.shake("name.test")
	for _, tc := range []struct {
		body  string
		holds int64 // while the server thinks
	}{
		{strings.Repeat("x", 100), 100},
		{id + strings.Repeat("x", 20), 20 + int64(len(awsValues["AWS_ACCESS_KEY_ID"]))},
	} {
		status, _, said := c.ask("%s%s", awsHead("PUT", id, fmt.Sprintf("Content-Length: %d\r\n", len(tc.body))), tc.body)
		if got := <-held; status != 200 || got != tc.holds {
			t.Errorf("%d %q, %d bytes held, want %d", status, said, got, tc.holds)
		}
	}
	h.server.collected.Release(maxCollected - 100)
	h.free()
	if !h.server.collected.TryAcquire(maxCollected) {
		t.Error("room for bodies is still held")
	}
}

func TestCRED34_case34_PayloadLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 128 MiB")
	}
	sizes := make(chan int, 2)
	o := serveOrigin(t, "name.test", func(_ *http.Request, body string) string { sizes <- len(body); return plainOK })
	h, fakes, _ := injecting(t, o, awsValues)
	id := fakes["AWS_ACCESS_KEY_ID"]
	body := strings.Repeat("x", credential.MaxSigned)
	status, _, _ := h.shake("name.test").ask("%s%s", awsHead("PUT", id, fmt.Sprintf("Content-Length: %d\r\n", len(body))), body)
	if got := <-sizes; status != 200 || got != len(body) {
		t.Errorf("%d, %d bytes", status, got)
	}
	status, _, said := h.shake("name.test").ask("%s", awsHead("PUT", id, fmt.Sprintf("Content-Length: %d\r\n", len(body)+1)))
	if status != 403 || !strings.Contains(said, "67108864") || !strings.Contains(said, "UNSIGNED-PAYLOAD") {
		t.Errorf("%d %q", status, said)
	}
	if len(o.got()) != 1 {
		t.Error("the second one was sent")
	}
	h.free()
	if !h.server.collected.TryAcquire(maxCollected) {
		t.Error("room for bodies is still held")
	}
}

// TLS-45: a body whose length changes holds as much room as it has bytes, and gives it back; without room it goes out in chunks
// and waits for nobody.
func TestTLS45_CRED26_RoomForBodiesOfAnotherLength(t *testing.T) {
	var h *inspecting
	held := make(chan int64, 1)
	o := serveOrigin(t, "name.test", func(*http.Request, string) string {
		free := int64(0)
		for ; h.server.collected.TryAcquire(1); free++ {
		}
		h.server.collected.Release(free)
		held <- 200 - free
		return plainOK
	})
	h, fakes, _ := injecting(t, o, map[string]string{"T": secretToken})
	if !h.server.collected.TryAcquire(maxCollected - 200) {
		t.Fatal("room is taken before there is a request")
	}
	c := h.shake("name.test")
	for _, tc := range []struct {
		size, holds int64
		framing     string
	}{{150, 150 - 47 + int64(len(secretToken)), "Content-Length: "}, {300, 0, "Transfer-Encoding: chunked\r\n"}} {
		body := fakes["T"] + strings.Repeat("x", int(tc.size)-47)
		if status, _, _ := c.ask("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body); status != 200 {
			t.Error(status)
		}
		if got := <-held; got != tc.holds {
			t.Errorf("a body of %d bytes holds %d, not %d", tc.size, got, tc.holds)
		}
		if got := o.got(); !strings.Contains(got[len(got)-1], tc.framing) {
			t.Errorf("%q", got[len(got)-1])
		}
	}
	c.tls.Close()
	h.free()
	if !h.server.collected.TryAcquire(200) {
		t.Error("room is held by nobody")
	}
}
