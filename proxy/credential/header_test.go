package credential

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

func headerStore(t testing.TB) *Injection {
	t.Helper()
	s := newStore(t)
	plant(t, s, "A", tokenFake, "secret-a", "h.example")
	plant(t, s, "CTL", otherFake, "two\nlines", "h.example")
	plant(t, s, "FAR", longFake, "far", "elsewhere.example")
	plant(t, s, "J", jwtFake, "real.jwt.value", "h.example")
	plant(t, s, "TAB", jwtFake[:30]+"!", "a\t", "h.example")
	return at(t, s, "h.example")
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func TestCRED22_Header(t *testing.T) {
	i := headerStore(t)
	in := httphead.Header{
		{Name: "Authorization", Value: "Bearer " + tokenFake},
		{Name: "X-Two", Value: tokenFake + "," + jwtFake},
		{Name: "X-" + tokenFake, Value: "name"},
		{Name: "X-Far", Value: longFake},
		{Name: "x-two", Value: "x" + tokenFake},
		{Name: "X-Part", Value: tokenFake[:46]},
	}
	kept := append(httphead.Header(nil), in...)
	got, err := i.Header(in)
	if err != nil {
		t.Fatal(err)
	}
	want := httphead.Header{
		{Name: "Authorization", Value: "Bearer secret-a"}, // case 22
		{Name: "X-Two", Value: "secret-a,real.jwt.value"},
		{Name: "X-" + tokenFake, Value: "name"},
		{Name: "X-Far", Value: longFake},
		{Name: "x-two", Value: "xsecret-a"},
		{Name: "X-Part", Value: tokenFake[:46]},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(kept, in); diff != "" {
		t.Errorf("the input changed: %s", diff)
	}
	same, err := i.Header(want[2:4])
	if err != nil || &same[0] != &want[2] {
		t.Errorf("without a sentinel: %v, %v", same, err)
	}
	if none, err := i.Header(nil); len(none) != 0 || err != nil {
		t.Errorf("no fields: %v, %v", none, err)
	}
}

func TestCRED23_Basic(t *testing.T) {
	i := headerStore(t)
	unpadded := strings.TrimRight(b64("u:"+tokenFake), "=")
	if unpadded == b64("u:"+tokenFake) {
		t.Fatal("the example needs padding")
	}
	for _, tc := range []struct{ name, in, want string }{
		{"case 23", "Basic " + b64("u:"+tokenFake), "Basic " + b64("u:secret-a")},
		{"user", "Basic " + b64(tokenFake+":"), "Basic " + b64("secret-a:")},
		{"both", "basic " + b64(tokenFake+":"+jwtFake), "basic " + b64("secret-a:real.jwt.value")},
		{"case and blanks", "bAsIc  \t " + b64("u:"+tokenFake), "bAsIc  \t " + b64("u:secret-a")},
		{"no padding", "Basic " + unpadded, "Basic " + b64("u:secret-a")},
		{"control characters are encoded", "Basic " + b64("u:"+otherFake), "Basic " + b64("u:two\nlines")},
		{"whole token is the sentinel", "Basic " + tokenFake, "Basic secret-a"},
	} {
		in := httphead.Header{{Name: "authorization", Value: tc.in}}
		got, err := i.Header(in)
		if err != nil || got[0].Value != tc.want {
			t.Errorf("%s: %v, %v, want %q", tc.name, got, err, tc.want)
		}
	}
	for _, tc := range []struct{ name, value string }{
		{"Authorization", "Basic " + b64("u:plain")},
		{"Authorization", "Basic " + strings.TrimRight(b64("u:plain"), "=")},
		{"Authorization", "Basic " + b64("u:"+longFake)},
		{"Authorization", "Basic " + b64("u:" + tokenFake)[1:]},
		{"Authorization", "Basic !" + b64("u:"+tokenFake)},
		{"Authorization", "Basic " + b64("u:"+tokenFake) + "="},
		{"Authorization", "Basic " + b64("u:"+tokenFake) + " x"},
		{"Authorization", "Basic"},
		{"Authorization", "Basic "},
		{"Authorization", ""},
		{"Authorization", "Basic" + b64("u:"+tokenFake)},
		{"Authorization", "Bearer " + b64("u:"+tokenFake)},
		{"X-Authorization", "Basic " + b64("u:"+tokenFake)},
	} {
		in := httphead.Header{{Name: tc.name, Value: tc.value}}
		if got, err := i.Header(in); err != nil || got[0].Value != tc.value {
			t.Errorf("%s: %s became %v, %v", tc.name, tc.value, got, err)
		}
	}
}

func TestCRED24_Control(t *testing.T) {
	i := headerStore(t)
	for _, value := range []string{otherFake, "x " + tokenFake + otherFake, jwtFake[:30] + "!"} {
		in := httphead.Header{{Name: "A", Value: "b"}, {Name: "X", Value: value}}
		if got, err := i.Header(in); !errors.Is(err, ErrControl) || got != nil {
			t.Errorf("%s: %v, %v", value, got, err)
		}
	}
	const text = "a masked credential holds a control character and cannot be sent in a header"
	if ErrControl.Error() != text {
		t.Errorf("%q", ErrControl)
	}
	// A body has no such limit.
	if got := replaced(t, i, otherFake); got != "two\nlines" {
		t.Errorf("%q", got)
	}
}

// TestCRED23_OverwritesOutgrownBuffers: a buffer that held values and was too small holds none afterwards.
func TestCRED23_OverwritesOutgrownBuffers(t *testing.T) {
	first := appendSecret(nil, []byte("secret"))
	whole := first[:cap(first)]
	second := appendSecret(first, make([]byte, cap(first)))
	if string(second[:6]) != "secret" || strings.Contains(string(whole), "secret") {
		t.Errorf("%q, outgrown %q", second[:6], whole)
	}
}
