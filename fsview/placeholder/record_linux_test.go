package placeholder

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sampleRecord() *record {
	return &record{id: 77, dir: true, parent: fileID{dev: 66304, ino: 1234567}, where: "/home/u/p q", name: ".vsc\n\"\xffode",
		boot: "6b1c0a44-0001-4e0a-9c7e-000000000000", time: 1764513429000000001, uid: 1001,
		mark: strings.Repeat("0f", markLen/2),
		made: &evidence{id: fileID{dev: 66304, ino: 99}, mode: dirMode, uid: 1001, marked: true, born: 1, modified: -2,
			changed: math.MaxInt64}}
}

var compareRecords = cmp.AllowUnexported(record{}, evidence{}, fileID{})

func TestFS54_RecordSurvivesItsLine(t *testing.T) {
	want := sampleRecord()
	c := parse([]byte(want.makeLine() + want.madeLine()))
	if c.bad != 0 || c.torn || c.lines != 2 || len(c.live()) != 1 {
		t.Fatalf("bad %d, torn %v, lines %d, live %d", c.bad, c.torn, c.lines, len(c.live()))
	}
	if diff := cmp.Diff(want, c.live()[0], compareRecords); diff != "" {
		t.Error(diff)
	}
}

func TestFS54_DroppedRecordIsForgotten(t *testing.T) {
	r := sampleRecord()
	c := parse([]byte(r.makeLine() + r.dropLine() + r.madeLine()))
	if len(c.live()) != 0 || c.bad != 1 {
		t.Errorf("live %d, bad %d; a made line after the drop says nothing", len(c.live()), c.bad)
	}
}

// A power cut may leave any beginning of what was written last, or blocks of zeros.
func TestFS54_TornJournalKeepsWhatWasSynced(t *testing.T) {
	first, second := sampleRecord(), sampleRecord()
	second.id, second.name = 78, "other"
	synced := first.makeLine() + first.madeLine()
	// Without its newline alone the last line is whole.
	for n := range len(second.makeLine()) - 1 {
		tail := second.makeLine()[:n]
		for _, data := range []string{synced + tail, synced + strings.Repeat("\x00", n)} {
			c := parse([]byte(data))
			if len(c.live()) != 1 || c.live()[0].id != first.id || c.live()[0].made == nil {
				t.Fatalf("with %d bytes of the next line: %d live records", n, len(c.live()))
			}
			if c.torn != (n > 0) {
				t.Fatalf("torn = %v with %d bytes of the next line", c.torn, n)
			}
			// What is appended after a torn line begins a line of its own.
			if c := parse([]byte(data + "\n" + second.makeLine())); len(c.live()) != 2 {
				t.Fatalf("after %d torn bytes: %d live records", n, len(c.live()))
			}
		}
	}
}

func TestFS54_LinesThatMustNotBeObeyed(t *testing.T) {
	change := func(edit func(*record)) string {
		r := sampleRecord()
		edit(r)
		return r.makeLine()
	}
	good := sampleRecord()
	tests := []struct{ name, line string }{
		{"relative directory", change(func(r *record) { r.where = "p" })},
		{"dots in the directory", change(func(r *record) { r.where = "/p/../q" })},
		{"NUL in the directory", change(func(r *record) { r.where = "/p\x00" })},
		{"name with a slash", change(func(r *record) { r.name = "a/b" })},
		{"name that is the parent", change(func(r *record) { r.name = ".." })},
		{"no name", change(func(r *record) { r.name = "" })},
		{"number of the journal's lock", change(func(r *record) { r.id = 0 })},
		{"number past the end of a file", change(func(r *record) { r.id = maxID })},
		{"mark that is a path", change(func(r *record) { r.mark = strings.Repeat("/", markLen) })},
		{"short mark", change(func(r *record) { r.mark = "00" })},
		{"flipped bit", strings.Replace(good.makeLine(), "1234567", "1234566", 1)},
		{"made without make", good.madeLine()},
		{"unknown word", line("unmake 77")},
		{"no words", line("")},
		{"something after the end", line(strings.TrimSuffix(good.makeLine()[9:], "\n") + " x")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if c := parse([]byte(tt.line)); len(c.live()) != 0 || c.bad != 1 {
				t.Errorf("%d live records, %d bad lines", len(c.live()), c.bad)
			}
		})
	}
	if c := parse([]byte(good.makeLine() + change(func(r *record) { r.name = "twice" }))); c.live()[0].name != good.name {
		t.Error("a second record took over a number")
	}
}

// FuzzFS54_Parse: no journal makes the reader fail, and what it reads it can write and read again.
func FuzzFS54_Parse(f *testing.F) {
	r := sampleRecord()
	f.Add([]byte(r.makeLine() + r.madeLine() + r.dropLine()))
	f.Add([]byte(r.makeLine() + r.madeLine()[:20]))
	f.Add([]byte(r.makeLine()[1:] + "\n\x00\x00\n" + r.makeLine()))
	f.Fuzz(func(t *testing.T, data []byte) {
		// A checksum is no obstacle to a bug behind it: each line is tried with a right one too.
		var summed strings.Builder
		for text := range strings.SplitSeq(string(data), "\n") {
			if _, rest, ok := strings.Cut(text, " "); ok {
				summed.WriteString(line(rest))
			}
		}
		for _, text := range []string{string(data), summed.String()} {
			c := parse([]byte(text))
			var again strings.Builder
			for _, r := range c.live() {
				if !isName(r.name) || !isMark(r.mark) || r.id == 0 || r.id >= maxID || checkPath(r.path()) != nil {
					t.Fatalf("accepted %+v", r)
				}
				again.WriteString(r.makeLine())
				if r.made != nil {
					again.WriteString(r.madeLine())
				}
			}
			second := parse([]byte(again.String()))
			if diff := cmp.Diff(c.live(), second.live(), compareRecords); diff != "" || second.bad != 0 {
				t.Fatalf("%d bad lines\n%s", second.bad, diff)
			}
		}
	})
}

func TestFS54_DefaultState(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		uid  int
		want string // "" for ErrState
	}{
		{"home", map[string]string{"HOME": "/home/u"}, 1001, "/home/u/.local/state/srt"},
		{"XDG", map[string]string{"HOME": "/home/u", "XDG_STATE_HOME": "/s/"}, 1001, "/s/srt"},
		{"relative XDG is unset", map[string]string{"HOME": "/home/u", "XDG_STATE_HOME": "s"}, 1001, "/home/u/.local/state/srt"},
		{"root, with a user's home", map[string]string{"HOME": "/home/u"}, 0, "/var/lib/srt"},
		{"root without a home", nil, 0, "/var/lib/srt"},
		{"root with XDG", map[string]string{"XDG_STATE_HOME": "/s"}, 0, "/s/srt"},
		{"no home", nil, 1001, ""},
		{"empty home is not /", map[string]string{"HOME": ""}, 1001, ""},
		{"relative home", map[string]string{"HOME": "u"}, 1001, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DefaultState(func(key string) string { return tt.env[key] }, tt.uid)
			if got != tt.want || errors.Is(err, ErrState) != (tt.want == "") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestFS54_ErrorsSayWhatWhereAndWhatToDo(t *testing.T) {
	err := stateErrorSample()
	for _, want := range []string{"make the state directory", `"/s/srt"`, ErrState.Error(), "no such device", "set XDG_STATE_HOME"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if !errors.Is(err, ErrState) || !errors.Is(err, errSample) {
		t.Errorf("%v is not both reasons", err)
	}
}

var errSample = errors.New("no such device")

func stateErrorSample() error {
	return &Error{Op: "make the state directory", Path: "/s/srt", Err: stateError{errSample}, Advice: "set XDG_STATE_HOME"}
}
