package runtime

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// reporting is a session that starts nothing: what is reported to it goes the way of all refusals.
func reporting(opts ...Option) *Sandbox { return &Sandbox{opts: newOptions(opts)} }

func refusedFile(path, key string) violation.Event {
	return violation.Event{Operation: "openat", Target: path, Rule: "filesystem.allowWrite", CommandID: key}
}

func linesOf(seq iter.Seq[Violation]) (lines []string) {
	for v := range seq {
		lines = append(lines, v.Line)
	}
	return lines
}

func TestVIO1_VIO3_Case9_KeyAndUserName(t *testing.T) {
	for _, tc := range []struct{ key, user string }{
		{"id-1", "srt.aWQtMQ=="},
		{strings.Repeat("é", 100), "srt"}, // its carrier does not fit: the listener alone attributes
		{"", "srt"},
	} {
		if got := policy.ProxyUser(tc.key); got != tc.user {
			t.Errorf("%.5q: user %q, want %q", tc.key, got, tc.user)
		}
	}
	s := reporting()
	s.report(refusedFile("/x", "id-1"))
	v := s.Violations().Recent(1)[0]
	if v.Key != "id-1" || !slices.Equal(linesOf(s.Violations().ForKey("id-1")), []string{"deny openat /x"}) {
		t.Errorf("%+v", v)
	}
}

func TestVIO4_VIO5_VIO6_Case10_AKeyThatNobodyHandedOut(t *testing.T) {
	s := reporting()
	s.report(refusedFile("/x", "x\x1b[31m<k>"))
	s.report(refusedFile("/x", ""))
	got := s.Violations().Recent(2)
	if got[0].Command != "x [31mk" || got[1].Command != "" || got[1].Key != "" {
		t.Errorf("%+v", got)
	}
	if all := linesOf(s.Violations().ForKey("x\x1b[31m<k>")); len(all) != 1 {
		t.Errorf("VIO-32: %q", all)
	}
	if all := linesOf(s.Violations().ForKey("")); len(all) != 0 {
		t.Errorf("VIO-32: an unattributed event has a key: %q", all)
	}
	if all := linesOf(s.Violations().ForCommand("x [31mk")); len(all) != 1 {
		t.Errorf("VIO-6: %q", all)
	}
}

func TestVIO30_VIO31_Case11_TheStoreByTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := reporting()
		v := s.Violations()
		for range 105 {
			s.report(refusedFile("/x", ""))
		}
		var lengths []int
		cancel := v.Subscribe(func(list []Violation) {
			lengths = append(lengths, len(list))
			if len(list) == 0 {
				panic("contained") // LIB-52
			}
		})
		defer cancel()
		first := slices.Collect(v.All())[0]
		if v.Len() != 100 || v.Total() != 105 || first.Seq != 6 || len(v.Recent(0)) != 0 || len(v.Recent(3)) != 3 {
			t.Errorf("Len %d, Total %d, first %d", v.Len(), v.Total(), first.Seq)
		}
		v.Clear()
		s.report(refusedFile("/x", ""))
		synctest.Wait()
		if v.Len() != 1 || v.Total() != 106 || !slices.Equal(lengths, []int{100, 0, 1}) {
			t.Errorf("Len %d, Total %d, lists of %v", v.Len(), v.Total(), lengths)
		}
	})
}

func TestVIO20_Case12_LinesAreCleaned(t *testing.T) {
	s := reporting()
	s.report(violation.Event{Operation: "a<b>\r\n\tc", Target: "\u202e"})
	if got := s.Violations().Recent(1)[0].Line; got != "deny ab c" {
		t.Errorf("%q", got)
	}
}

func TestVIO33_Case13_Annotate(t *testing.T) {
	eol := "\n"
	if goruntime.GOOS == "windows" {
		eol = "\r\n"
	}
	s := reporting()
	s.report(refusedFile("/other", "id-2"))
	if got := s.Annotate("id-1", "err"); got != "err" {
		t.Errorf("nothing refused: %q", got)
	}
	s.report(refusedFile("/x", "id-1"))
	want := strings.Join([]string{"err", "<sandbox_violations>", "deny openat /x", "</sandbox_violations>"}, eol)
	if got := s.Annotate("id-1", "err"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestVIO25_VIO26_Cases14And15_Ignored(t *testing.T) {
	for _, tc := range []struct {
		name   string
		ignore violation.Ignore
		event  violation.Event
		kept   bool
	}{
		{"case 14: the call is not matched", violation.Ignore{"*": {"openat"}}, refusedFile("/x", "npm"), true},
		{"case 14: the path is", violation.Ignore{"*": {"/x"}}, refusedFile("/x", "npm"), false},
		{"case 15: unattributed", violation.Ignore{"npm": {"/x"}}, refusedFile("/x", ""), true},
		{"case 15: of npm", violation.Ignore{"npm": {"/x"}}, refusedFile("/x", "npm"), false},
		{"case 15: of another", violation.Ignore{"npm": {"/x"}}, refusedFile("/x", "cargo"), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			called := 0
			s := reporting(WithOnViolation(func(violation.Event) { called++ }))
			s.store.Register("npm", "npm i")
			s.store.Register("cargo", "cargo b")
			s.store.SetIgnore(tc.ignore)
			s.report(tc.event)
			want := 0
			if tc.kept {
				want = 1
			}
			if v := s.Violations(); int(v.Total()) != want || v.Len() != want || called != want {
				t.Errorf("Total %d, Len %d, called %d times; want %d", v.Total(), v.Len(), called, want)
			}
		})
	}
}

func TestVIO13_VIO14_Case17_RefusedRequest(t *testing.T) {
	s := reporting()
	s.report(violation.Event{Operation: violation.HTTPRequest, Target: violation.Request("GET", "https://h/p?api_key=1"), Reason: "no"})
	v := s.Violations().Recent(1)[0]
	if v.Line != "deny http-request GET https://h/p?… (no)" || v.Host != "h" || v.Port != 443 || v.Kind != KindRequest || v.Reason != "no" {
		t.Errorf("%+v", v)
	}
}

func TestVIO11_Case8_PartsOfALine(t *testing.T) {
	s := reporting()
	s.report(violation.Event{Operation: violation.NetworkOutbound, Target: violation.HostPort("[::1]", 443), Rule: "network.allowedDomains",
		Reason: "host is not on the allow list", CommandID: "id-1", PID: 7, Process: "curl"})
	got := s.Violations().Recent(1)[0]
	if got.Time.IsZero() {
		t.Error("the time is not stamped")
	}
	want := Violation{Seq: 1, Time: got.Time, Kind: KindNetwork, Line: "deny network-outbound ::1:443 (host is not on the allow list)",
		Key: "id-1", Command: "id-1", Op: "network-outbound", Host: "::1", Port: 443, Reason: "host is not on the allow list",
		Rule: "network.allowedDomains", PID: 7, Process: "curl", target: "::1:443"}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got.Advice() != `network.allowedDomains: add "[::1]"` {
		t.Errorf("advice: %s", got.Advice())
	}
}

// The JSON of a violation is that of the record it was made of, whichever way it is asked for.
func TestViolationsMarshalToTheDocumentedForm(t *testing.T) {
	s := reporting()
	for _, e := range []violation.Event{
		{Operation: "openat", Target: "/x", Kind: violation.KindFileWrite, Creates: true, Rule: "filesystem.allowWrite", PID: 3, Process: "cc", CommandID: "k"},
		{Operation: violation.HTTPRequest, Target: "GET http://h/p", Reason: "no"},
		{Operation: violation.DNSQuery, Target: "h.test", Rule: "network.allowedDomains", Entry: "e"},
	} {
		s.report(e)
		record, v := s.store.Recent(1)[0], s.Violations().Recent(1)[0]
		want := string(violation.AppendJSON(nil, record))
		if got := string(v.AppendJSON(nil)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		marshalled, err := json.Marshal(v)
		if err != nil || string(marshalled) != want {
			t.Errorf("%v\ngot  %s\nwant %s", err, marshalled, want)
		}
	}
}

func TestLIB51_LIB52_WatchGivesAllAndEnds(t *testing.T) {
	s := reporting()
	v := s.Violations()
	s.report(refusedFile("/held", ""))
	watched := v.Watch(t.Context())
	s.report(refusedFile("/new", ""))
	s.store.Close()
	if got := linesOf(watched); !slices.Equal(got, []string{"deny openat /held", "deny openat /new"}) {
		t.Errorf("%q", got)
	}
}

func TestLIB52_AReaderThatLagsSeesAGap(t *testing.T) {
	s := reporting()
	watched := s.Violations().Watch(t.Context())
	wide := s.Violations().Watch(t.Context(), WatchBuffer(500))
	for range 250 {
		s.report(refusedFile("/x", ""))
	}
	s.store.Close()
	var seqs []uint64
	for v := range watched {
		seqs = append(seqs, v.Seq)
	}
	if len(seqs) != 100 || seqs[0] != 151 {
		t.Errorf("%d violations from %d", len(seqs), seqs[0])
	}
	if got := linesOf(wide); len(got) != 250 {
		t.Errorf("with more room: %d", len(got))
	}
}

func TestLIB51_WatchEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := reporting()
		ctx, cancel := context.WithCancel(t.Context())
		s.Violations().Watch(ctx) // never read: its context takes it away
		ended := make(chan int, 1)
		go func() {
			n := 0
			for range s.Violations().Watch(ctx) {
				n++
			}
			ended <- n
		}()
		synctest.Wait()
		s.report(refusedFile("/x", ""))
		synctest.Wait()
		cancel()
		if n := <-ended; n != 1 {
			t.Errorf("%d violations", n)
		}
		for v := range s.Violations().Watch(t.Context()) { // one may stop at any time
			if v.Seq != 1 {
				t.Errorf("%+v", v)
			}
			break
		}
	})
}

func TestLIB52_ACommandsOwnViolations(t *testing.T) {
	s := reporting()
	c := &Cmd{ID: "id-1", sandbox: s}
	if got := linesOf(c.Violations()); got != nil {
		t.Errorf("before Start: %q", got)
	}
	s.store.Register(c.Key(), "text")
	c.process = nothing{}
	s.report(refusedFile("/x", "id-1"))
	for range 300 {
		s.report(refusedFile("/noise", "id-2"))
	}
	s.Violations().Clear()
	want := []string{"deny openat /x"}
	if got := linesOf(c.Violations()); !slices.Equal(got, want) {
		t.Errorf("while it runs: %q", got)
	}
	c.keepViolations()
	s.store.Register(c.Key(), "another command with that id")
	s.report(refusedFile("/y", "id-1"))
	if got := linesOf(c.Violations()); !slices.Equal(got, want) {
		t.Errorf("after its end: %q", got)
	}
}

// nothing is a process that does nothing.
type nothing struct{ process }

func TestLostRefusalsAreNeverSilent(t *testing.T) {
	var log strings.Builder
	s := reporting(WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	s.noteLost(0)
	s.noteLost(2)
	if s.Violations().Lost() != 2 || s.Violations().Total() != 0 {
		t.Errorf("Lost %d, Total %d", s.Violations().Lost(), s.Violations().Total())
	}
	if strings.Count(log.String(), "lost=2") != 1 || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("log: %s", log.String())
	}
}
