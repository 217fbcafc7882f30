package violation

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestJSONOfAFileEvent(t *testing.T) {
	var s Store
	s.Register("id-1", "make <all>")
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	r, _ := s.Add(Event{Time: at, PID: 7, Process: "cc1", Operation: "openat", Target: "/h/.ssh/a\u202eb\n", Rule: "filesystem.denyRead.0",
		Entry: "~/.ssh", CommandID: "id-1"})
	want := `{"v":1,"time":"2026-01-02T02:04:05.000000006Z","seq":1,"id":"id-1","command":"make <all>","pid":7,"comm":"cc1",` +
		`"kind":"file-read","operation":"openat","target":"/h/.ssh/a\u202eb\n","path":"/h/.ssh/a\u202eb\n","rule":"filesystem.denyRead.0",` +
		`"entry":"~/.ssh","decision":"deny","advice":"filesystem.denyRead.0 (\"~/.ssh\") refuses it: remove that entry, or add ` +
		`\"/h/.ssh/a\\u202eb\\n\" to filesystem.allowRead","line":"deny openat /h/.ssh/a b"}`
	if got := string(AppendJSON(nil, r)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestJSONOfANetworkEvent(t *testing.T) {
	var s Store
	r, _ := s.Add(Event{Operation: NetworkOutbound, Target: "a.test:80", Rule: "network.allowedDomains", Reason: "host is not on the allow list"})
	want := `x{"v":1,"time":"0001-01-01T00:00:00.000000000Z","seq":1,"kind":"network","operation":"network-outbound","target":"a.test:80",` +
		`"host":"a.test","port":80,"rule":"network.allowedDomains","reason":"host is not on the allow list","decision":"deny",` +
		`"advice":"network.allowedDomains: add \"a.test\"","line":"deny network-outbound a.test:80 (host is not on the allow list)"}`
	if got := string(AppendJSON([]byte("x"), r)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestJSONOfAnIPv6Address_VIO11(t *testing.T) {
	for _, tc := range []struct {
		operation    Operation
		target, json string
	}{
		{NetworkOutbound, HostPort("2001:db8::7", 80), "[2001:db8::7]:80"},
		{SOCKSTunnel, HostPort("[::1]", 443), "[::1]:443"},
		{NetworkOutbound, HostPort("192.0.2.1", 80), "192.0.2.1:80"},
		{NetworkOutbound, HostPort("a.test", 80), "a.test:80"},
		{NetworkOutbound, "no port", "no port"},
		{HTTPRequest, Tunnel("::1", 443), "CONNECT [::1]:443"},
		{"openat", "/a:b:80", "/a:b:80"},
	} {
		var s Store
		r, _ := s.Add(Event{Operation: tc.operation, Target: tc.target})
		var got struct{ Target, Line string }
		if err := json.Unmarshal(AppendJSON(nil, r), &got); err != nil || got.Target != tc.json || got.Line != "deny "+string(tc.operation)+" "+tc.target {
			t.Errorf("%s %s: %+v, %v; want target %q", tc.operation, tc.target, got, err, tc.json)
		}
	}
}

func TestJSONOfALoss(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := `{"v":1,"time":"2026-01-02T03:04:05.000000000Z","kind":"lost","lost":12,"from":"reader"}`
	if got := string(AppendLossJSON(nil, 12, LostAtReader, at)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{"", "/h/.ssh/id", "\x1b]0;t\x07", "a\u202eb\U000e0041\U000e007f", "\xff<\xfe>\x00", "\u2028\"\\", "[::1]:7", "GET http://h/?a"} {
		f.Add(seed, "openat")
		f.Add(seed, "network-outbound")
	}
	f.Fuzz(func(t *testing.T, text, operation string) {
		var s Store
		r, _ := s.Add(Event{Operation: Operation(operation), Target: text, Process: text, Rule: "filesystem.denyRead.0", Entry: text, Reason: text, CommandID: text})
		line := AppendJSON(nil, r)
		if i := strings.IndexFunc(string(line), isUnsafe); i >= 0 {
			t.Fatalf("%q: an unsafe code point at %d", line, i)
		}
		var back map[string]any
		if err := json.Unmarshal(line, &back); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if want := strings.ToValidUTF8(text, "\ufffd"); len(strings.Map(ascii, text)) == len(text) && back["target"] != want {
			t.Errorf("target %q, want %q", back["target"], want)
		}
		if advice := r.Event.Advice(); advice == "" || Clean(advice) != advice || back["advice"] != advice {
			t.Errorf("advice %q", advice)
		}
		r.Event.Object()
	})
}

// ascii drops what is not ASCII.
func ascii(r rune) rune {
	if r > 0x7e {
		return -1
	}
	return r
}

func FuzzCarrier(f *testing.F) {
	for _, seed := range []string{"", "id-1", strings.Repeat("é", 101), strings.Repeat("a", 99) + "😀", "\xff\xfe", strings.Repeat("\xff", 200)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		carrier := Carrier(key)
		if (carrier == "") != (key == "") {
			t.Errorf("%q: carrier %q", key, carrier)
		}
		if again := Carrier(CutUTF16(key, keyLimit+1)); again != carrier { // the pair that is cut in half is whole in this cut
			if again = Carrier(CutUTF16(key, keyLimit+2)); again != carrier {
				t.Errorf("%q: %q and %q: what comes after 100 units counts (VIO-2)", key, carrier, again)
			}
		}
		if len(carrier) > 4*(3*keyLimit+2)/3+4 {
			t.Errorf("%q: a carrier of %d bytes", key, len(carrier))
		}
	})
}
