package credential

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

func TestCRED34_Payload(t *testing.T) {
	s := newStore(t)
	awsPair(t, s, realID, realKey, "")
	i := at(t, s, awsHost)
	h := awsRequest(idFake+serviceFor, "host;x-amz-content-sha256;x-amz-date", httphead.Field{Name: contentHash, Value: emptyHash})
	got := resign(t, i, "PUT", "/", awsHost, h, "body")
	sum := sha256.Sum256([]byte("body"))
	if value, _ := got.Get(contentHash); value != hex.EncodeToString(sum[:]) {
		t.Errorf("%s", value)
	}
	if _, n := resign(t, i, "PUT", "/", awsHost, awsRequest(idFake+serviceFor, "host;x-amz-date"), "body").Get(contentHash); n != 0 {
		t.Error("a header was added that the client did not send")
	}
	g, refused := i.Plan("PUT", "/", h, awsHost, SigV4Policy{})
	if refused != nil || g.Unsigned() || g.SignsLength() {
		t.Fatalf("%v, %v", g, refused)
	}
	// The body of a signed payload holds real values, the key's own included.
	out, err := io.ReadAll(g.Body(strings.NewReader("id=" + idFake)))
	if string(out) != "id="+realID || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}

// TestCRED34_Limit is the first half of case 34.
func TestCRED34_Limit(t *testing.T) {
	s := newStore(t)
	awsPair(t, s, realID, realKey, "")
	h := awsRequest(idFake+serviceFor, "host;x-amz-date")
	g, _ := at(t, s, awsHost).Plan("PUT", "/", h, awsHost, SigV4Policy{})
	payload := make([]byte, MaxSigned+1)
	if _, refused := g.Sign(h, payload[:MaxSigned]); refused != nil {
		t.Errorf("%d bytes: %v", MaxSigned, refused)
	}
	_, refused := g.Sign(h, payload)
	if refused == nil || !strings.Contains(refused.Reason, "67108864") || !strings.Contains(refused.Reason, "UNSIGNED-PAYLOAD") ||
		*refused != *g.TooLarge() {
		t.Errorf("%v", refused)
	}
}

func TestCRED34_Unsigned(t *testing.T) {
	s := newStore(t)
	awsPair(t, s, realID, realKey, realToken)
	plant(t, s, "OTHER", otherFake, strings.Repeat("o", len(otherFake)), "*.amazonaws.com")
	plant(t, s, "KEY2", tokenFake, "x", "else.example")
	h := awsRequest(idFake+serviceFor, "content-length;host;x-amz-content-sha256;x-amz-date", httphead.Field{Name: contentHash, Value: unsignedPayload})
	i := at(t, s, awsHost)
	g, refused := i.Plan("PUT", "/", h, awsHost, SigV4Policy{})
	if refused != nil || !g.Unsigned() || !g.SignsLength() {
		t.Fatalf("%v, %v", g, refused)
	}
	if !g.LengthKept() || i.LengthKept() {
		t.Error("the members of the key count for the length of a body in which they are not looked for")
	}
	out, err := io.ReadAll(g.Body(strings.NewReader(idFake + otherFake + sessFake)))
	if want := idFake + strings.Repeat("o", len(otherFake)) + sessFake; string(out) != want || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	if _, refused := g.Sign(h, nil); refused == nil || !strings.Contains(refused.Reason, "content-length") {
		t.Errorf("without a length: %v", refused)
	}
	g.SetLength(4)
	four, refused := g.Sign(h, nil)
	if value, _ := four.Get(contentHash); refused != nil || value != unsignedPayload {
		t.Fatalf("%v, %v", four, refused)
	}
	g.SetLength(5)
	five, _ := g.Sign(h, []byte("of no account"))
	if signatureOf(t, four) == signatureOf(t, five) {
		t.Error("the length is not signed")
	}
}

func TestCRED24_ControlInKey(t *testing.T) {
	s := newStore(t)
	p := awsPair(t, s, "AKID\r\nX: y", realKey, realToken)
	h := awsRequest(idFake+serviceFor, "host;x-amz-date")
	sign := func() *Refused {
		g, refused := at(t, s, awsHost).Plan("GET", "/", h, awsHost, SigV4Policy{})
		if refused != nil {
			t.Fatal(refused)
		}
		_, refused = g.Sign(h, nil)
		return refused
	}
	if refused := sign(); refused == nil || refused.Reason != ErrControl.Error() {
		t.Errorf("key id: %v", refused)
	}
	change(t, p.id, realID)
	change(t, p.token, "tok\n")
	if refused := sign(); refused == nil || refused.Reason != ErrControl.Error() {
		t.Errorf("token: %v", refused)
	}
	change(t, p.token, realToken)
	g, _ := at(t, s, awsHost).Plan("GET", "/", h, awsHost, SigV4Policy{})
	_ = s.Close()
	if _, refused := g.Sign(h, nil); refused == nil || !strings.Contains(refused.Reason, "session is over") {
		t.Errorf("closed: %v", refused)
	}
}

// TestCRED35_MAC: the code of RFC 2104 that leaves no key behind says what crypto/hmac says.
func TestCRED35_MAC(t *testing.T) {
	for _, size := range []int{0, 1, 31, 32, 63, 64, 65, 200} {
		key := []byte(strings.Repeat("k", size))
		for _, message := range []string{"", "m", strings.Repeat("message", 40)} {
			want := hmac.New(sha256.New, key)
			_, _ = io.WriteString(want, message)
			var got [sha256.Size]byte
			h := sha256.New()
			mac(&got, h, key, message)
			if !hmac.Equal(got[:], want.Sum(nil)) {
				t.Errorf("key of %d bytes, message of %d", size, len(message))
			}
			if kept := hashBuffer(t, h); strings.Contains(kept, "k") || strings.Contains(kept, "m") {
				t.Errorf("key of %d bytes, message of %d: the hash still holds %q", size, len(message), kept)
			}
		}
	}
}

// TestCRED35_Scrub: Reset alone leaves what was written last.
func TestCRED35_Scrub(t *testing.T) {
	h := sha256.New()
	_, _ = io.WriteString(h, strings.Repeat("k", 100))
	h.Reset()
	if !strings.Contains(hashBuffer(t, h), "k") {
		t.Fatal("the buffer of the hash is not where this test looks for it")
	}
	scrub(h)
	if kept := hashBuffer(t, h); strings.Trim(kept, "\x00") != "" {
		t.Errorf("%q", kept)
	}
	if got := h.Sum(nil); hex.EncodeToString(got) != emptyHash {
		t.Errorf("%x", got)
	}
}

// hashBuffer is what a SHA-256 keeps of what it was given.
func hashBuffer(t *testing.T, h any) string {
	t.Helper()
	field := reflect.ValueOf(h).Elem().FieldByName("x")
	var out []byte
	for k := range field.Len() {
		out = append(out, byte(field.Index(k).Uint()))
	}
	return string(out)
}
