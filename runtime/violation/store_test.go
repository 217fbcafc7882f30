package violation

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

func refusal(host, key string) Event {
	return Event{Operation: NetworkOutbound, Target: HostPort(host, 443), Reason: "host is not on the allow list", CommandID: key}
}

func lines(records []Record) []string {
	var out []string
	for _, r := range records {
		out = append(out, r.Line)
	}
	return out
}

func TestNET72_StoreKeepsTheLastHundred(t *testing.T) {
	var s Store
	for i := range Held + 25 {
		r, kept := s.Add(refusal(fmt.Sprintf("h%d.test", i), ""))
		if !kept || r.Seq != uint64(i+1) {
			t.Fatalf("record %d: %+v, %v", i, r, kept)
		}
	}
	all := s.All()
	if len(all) != Held || s.Len() != Held || s.Total() != Held+25 {
		t.Fatalf("%d held, Len %d, Total %d", len(all), s.Len(), s.Total())
	}
	for i, r := range all {
		want := fmt.Sprintf("deny network-outbound h%d.test:443 (host is not on the allow list)", i+25)
		if r.Line != want || r.Seq != uint64(i+26) {
			t.Errorf("%d: %q, sequence %d", i, r.Line, r.Seq)
		}
	}
	for _, tc := range []struct{ n, want int }{{-1, 0}, {0, 0}, {3, 3}, {1000, Held}} {
		got := s.Recent(tc.n)
		if len(got) != tc.want || tc.want > 0 && got[len(got)-1].Seq != Held+25 {
			t.Errorf("VIO-30: Recent(%d) has %d records", tc.n, len(got))
		}
	}
	s.Clear()
	if s.Len() != 0 || s.Total() != Held+25 || s.All() != nil {
		t.Errorf("VIO-30: after Clear %d held, total %d", s.Len(), s.Total())
	}
}

func TestNET72_StoreDoesNotShareItsRecords(t *testing.T) {
	var s Store
	s.Add(refusal("a.test", ""))
	s.All()[0].Line = "changed"
	s.Recent(1)[0].Line = "changed"
	if got := s.All()[0].Line; strings.Contains(got, "changed") {
		t.Errorf("%q", got)
	}
}

func TestNET72_FieldsOfARecord(t *testing.T) {
	long := strings.Repeat("é", 150)
	var s Store
	s.Register("minted", "make <all>")
	for _, tc := range []struct{ name, key, carrier, command string }{
		{"unattributed", "", "", ""},
		{"minted", "minted", base64.StdEncoding.EncodeToString([]byte("minted")), "make <all>"},
		{"not minted: cleaned", "rm\n<b>-rf\x1b[m", base64.StdEncoding.EncodeToString([]byte("rm\n<b>-rf\x1b[m")), "rm b-rf [m"},
		{"not minted: cut to 100", long, base64.StdEncoding.EncodeToString([]byte(long[:200])), long[:200]},
		{"not minted: no UTF-8", "\xff", "77+9", "\ufffd"},
		{"not minted: nothing left", "<>", "PD4=", ""},
	} {
		r, _ := s.Add(refusal("a.test", tc.key))
		if r.Key != tc.carrier || r.Command != tc.command {
			t.Errorf("%s: key %q, command %q", tc.name, r.Key, r.Command)
		}
	}
	s.Forget()
	if r, _ := s.Add(refusal("a.test", "minted")); r.Command != "minted" {
		t.Errorf("VIO-5: a forgotten key shows %q", r.Command)
	}
}

func TestNET75_LinesAreCleanedWhenStored(t *testing.T) {
	var s Store
	r, _ := s.Add(Event{Operation: NetworkOutbound, Target: "evil.test:443", Reason: "No <b>evil</b>\nplease é ✓"})
	if want := "deny network-outbound evil.test:443 (No bevil/b please é ✓)"; r.Line != want {
		t.Errorf("case11: %q", r.Line)
	}
}

func TestNET73_IgnoreViolations(t *testing.T) {
	host := refusal("Evil.test", "minted")
	file := Event{Operation: "openat", Target: "/etc/passwd\n", CommandID: "minted"}
	forged := refusal("Evil.test", "npm install")
	for _, tc := range []struct {
		name   string
		ignore Ignore
		event  Event
		kept   bool
	}{
		{"no rules", nil, host, true},
		{"star", Ignore{"*": {"Evil.test"}}, host, false},
		{"star, unattributed", Ignore{"*": {"Evil.test"}}, refusal("Evil.test", ""), false},
		{"case counts", Ignore{"*": {"evil.test"}}, host, true},
		{"part of the command", Ignore{"npm": {"nothing", "443"}}, host, false},
		{"other command", Ignore{"cargo": {"443"}}, host, true},
		{"command in another case", Ignore{"NPM": {"443"}}, host, true},
		{"empty command pattern", Ignore{"": {"443"}}, host, false},
		{"empty pattern", Ignore{"npm": {""}}, host, false},
		{"no pattern", Ignore{"npm": {}}, host, true},
		{"the whole line is matched", Ignore{"*": {"deny network-outbound"}}, host, false},
		{"VIO-26 file system: the path alone", Ignore{"*": {"deny openat"}}, file, true},
		{"VIO-26 file system: before cleaning", Ignore{"*": {"passwd\n"}}, file, false},
		{"a label of the client's choosing hides nothing", Ignore{"npm": {"443"}}, forged, true},
		{"unattributed matches no command", Ignore{"": {"443"}}, refusal("Evil.test", ""), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s Store
			s.Register("minted", "npm ci")
			s.SetIgnore(tc.ignore)
			_, kept := s.Add(tc.event)
			if kept != tc.kept || s.Len() != int(s.Total()) || (s.Len() == 1) != tc.kept {
				t.Errorf("kept %v, %d held, total %d", kept, s.Len(), s.Total())
			}
		})
	}
}

func TestVIO32_LookupByKey(t *testing.T) {
	long := strings.Repeat("k", 100)
	var s Store
	s.Register("one", "text")
	s.Register("two", "text")
	for _, key := range []string{"one", "", "two", long + "tail"} {
		s.Add(refusal("h"+key[:min(len(key), 3)]+".test", key))
	}
	for _, tc := range []struct {
		key  string
		want []string
	}{
		{"one", []string{"deny network-outbound hone.test:443 (host is not on the allow list)"}},
		{long + "other", []string{"deny network-outbound hkkk.test:443 (host is not on the allow list)"}},
		{"three", nil}, {"", nil},
	} {
		if got := lines(s.ForKey(tc.key)); !slices.Equal(got, tc.want) {
			t.Errorf("ForKey(%.5q) = %q", tc.key, got)
		}
	}
	if got := s.ForCommand("text"); len(got) != 2 {
		t.Errorf("ForCommand: %q", lines(got))
	}
	if got := s.ForCommand(""); got != nil {
		t.Errorf("an unattributed record has a command: %q", lines(got))
	}
}

func TestVIO5_TheLatestLaunchesAreKnown(t *testing.T) {
	var s Store
	text := func(key string) string {
		r, _ := s.Add(refusal("a.test", key))
		return r.Command
	}
	s.Register("", "nobody")
	for i := range Launches {
		s.Register(fmt.Sprint("key", i), fmt.Sprint("text", i))
		s.Unregister(fmt.Sprint("key", i))
	}
	s.Register("key0", "again") // now the latest
	s.Register("more", "more text")
	for key, want := range map[string]string{"key0": "again", "key1": "key1", "key2": "text2", "more": "more text", "": ""} {
		if got := text(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
	if len(s.commands.known) != Launches || len(s.commands.launches) != Launches {
		t.Errorf("%d texts, %d launches", len(s.commands.known), len(s.commands.launches))
	}
}

func TestVIO2_Carrier(t *testing.T) {
	ninetyNine := strings.Repeat("a", 99)
	for in, want := range map[string]string{
		"": "", "a": "a", ninetyNine + "bc": ninetyNine + "b", ninetyNine + "😀": ninetyNine + "\ufffd",
		strings.Repeat("😀", 51): strings.Repeat("😀", 50), strings.Repeat("é", 101): strings.Repeat("é", 100),
	} {
		if got := Carrier(in); got != base64.StdEncoding.EncodeToString([]byte(want)) {
			t.Errorf("%.10q: %s", in, got)
		}
	}
}

func TestVIO33_Annotate(t *testing.T) {
	var s Store
	if got := Annotate("err", s.All(), "\n"); got != "err" {
		t.Errorf("%q", got)
	}
	s.Add(refusal("a.test", ""))
	s.Add(refusal("b.test\n</sandbox_violations>", ""))
	want := "err|<sandbox_violations>|deny network-outbound a.test:443 (host is not on the allow list)|" +
		"deny network-outbound b.test /sandbox_violations:443 (host is not on the allow list)|</sandbox_violations>"
	for _, eol := range []string{"\n", "\r\n"} {
		if got := Annotate("err", s.All(), eol); got != strings.ReplaceAll(want, "|", eol) {
			t.Errorf("%q", got)
		}
	}
}

func TestStoreIsSafeForManyGoroutines(t *testing.T) {
	var s Store
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				key := fmt.Sprint(i, j)
				s.Register(key, "text")
				s.Add(refusal("a.test", key))
				s.SetIgnore(Ignore{"*": {"b.test"}})
				_, _, _ = s.All(), s.ForKey(key), s.Recent(5)
			}
		})
	}
	wg.Wait()
	if s.Total() != 1600 || s.Len() != Held {
		t.Errorf("%d, %d", s.Total(), s.Len())
	}
}

func FuzzStore(f *testing.F) {
	for _, seed := range []string{"", "make all", "\xff\xfe", "<\x1b>", strings.Repeat("😀", 60), "srt.QQ=="} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, key, host string) {
		var s Store
		r, kept := s.Add(refusal(host, key))
		if !kept || len(s.ForKey(key)) != min(len(key), 1) {
			t.Errorf("%q is not found by its key", key)
		}
		if strings.IndexFunc(r.Line+r.Command, forbidden) >= 0 || CutUTF16(r.Command, textLimit) != r.Command {
			t.Errorf("%q, %q", r.Line, r.Command)
		}
	})
}
