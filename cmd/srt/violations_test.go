package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// refused are violations with these sequence numbers.
func refused(seqs ...uint64) iter.Seq[runtime.Violation] {
	return func(yield func(runtime.Violation) bool) {
		for _, seq := range seqs {
			if !yield(runtime.Violation{Seq: seq, Kind: runtime.KindFileRead, Op: "openat", Path: "/x", Line: "deny openat /x"}) {
				return
			}
		}
	}
}

// shape reduces JSON lines to what a test is about: "3" for the violation 3, "lost 2 reader" for a loss.
func shape(t *testing.T, text string) (out []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var o struct {
			V    int
			Seq  uint64
			Kind string
			Lost uint64
			From string
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil || o.V != 1 {
			t.Fatalf("%q: %v", line, err)
		}
		if o.Kind == "lost" {
			out = append(out, fmt.Sprintf("lost %d %s", o.Lost, o.From))
			continue
		}
		out = append(out, fmt.Sprint(o.Seq))
	}
	return out
}

func TestViolationsAreAppendedAsJSONLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "v.jsonl")
	for range 2 {
		f := newFake()
		f.watched = refused(1, 2)
		f.ended <- nil
		if status, stdout, stderr := cli(t, f, "--violations", file, "true"); status != 0 || stdout != "" || stderr != "" {
			t.Fatalf("%d, %q, %q", status, stdout, stderr)
		}
		if f.opts.monitor != runtime.MonitorAll {
			t.Errorf("the monitor is %v", f.opts.monitor)
		}
		own, err := filepath.EvalSymlinks(file)
		if err != nil || !slices.Contains(f.opts.ownFiles, own) {
			t.Errorf("commands can change the file: %q, %v", f.opts.ownFiles, err)
		}
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := shape(t, string(content)); !slices.Equal(got, []string{"1", "2", "1", "2"}) {
		t.Errorf("%q", got)
	}
}

func TestViolationsOnStandardOutput(t *testing.T) {
	f := newFake()
	f.watched, f.lost = refused(1, 4, 5), 3
	f.ended <- nil
	status, stdout, stderr := cli(t, f, "--violations=-", "true")
	if want := []string{"lost 3 source", "1", "lost 2 reader", "4", "5"}; status != 0 || stderr != "" || !slices.Equal(shape(t, stdout), want) {
		t.Errorf("LIB-52: %d, %q, %q", status, stdout, stderr)
	}
}

func TestMonitorIsOnlyOnWhereItShows(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want runtime.Monitor
	}{
		{[]string{"true"}, runtime.MonitorOff},
		{[]string{"-q", "true"}, runtime.MonitorOff},
		{[]string{"-d", "true"}, runtime.MonitorAll},
		{[]string{"--violations=-", "true"}, runtime.MonitorAll},
	} {
		f := newFake()
		f.ended <- nil
		cli(t, f, tc.args...)
		if f.opts.monitor != tc.want {
			t.Errorf("%q: %v, want %v", tc.args, f.opts.monitor, tc.want)
		}
	}
}

func TestUnusableViolations(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("elsewhere", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, target, stderr string }{
		{"a link", dir + "/link", "Error: --violations=" + dir + "/link is not usable: it is a symbolic link, which whoever can write there can have lead anywhere. Refusing"},
		{"a directory", dir, "Error: --violations=" + dir + " is not usable: is a directory. Refusing to run the command"},
		{"no directory", dir + "/no/v", "Error: --violations=" + dir + "/no/v is not usable: no such file or directory. Refusing"},
		{"not open", "fd:2147483647", "Error: --violations=fd:2147483647 is not usable: the descriptor is not open. Refusing"},
		{"empty", "", "error: option '--violations <file>' argument '' is invalid: it must be a file, "},
		{"descriptor 0", "fd:0", "error: option '--violations <file>' argument 'fd:0' is invalid: after fd: "},
		{"no number", "fd:x", "error: option '--violations <file>' argument 'fd:x' is invalid: after fd: "},
		{"a sign", "fd:+3", "error: option '--violations <file>' argument 'fd:+3' is invalid: after fd: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake()
			status, stdout, stderr := cli(t, f, "--violations="+tc.target, "true")
			if status != 1 || stdout != "" || !strings.HasPrefix(stderr, tc.stderr) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%d, %q, %q", status, stdout, stderr)
			}
			if len(f.calls) != 0 {
				t.Errorf("something was built: %q", f.calls)
			}
		})
	}
}

// failing is a writer with no room for the writes that have a number in it; of those it takes one byte.
type failing struct {
	bytes.Buffer
	calls int
	full  []int
}

func (f *failing) Write(p []byte) (int, error) {
	if f.calls++; slices.Contains(f.full, f.calls) {
		n, _ := f.Buffer.Write(p[:1])
		return n, errors.New("no space left on device")
	}
	return f.Buffer.Write(p)
}

func TestFailingWritesAreSaidOnceAndCounted(t *testing.T) {
	out := &failing{full: []int{2, 3, 4}}
	var said []string
	l := &violationLog{target: "v", out: out, warn: func(s string) { said = append(said, s) }}
	f := newFake()
	f.watched = refused(1, 2, 3, 4)
	l.follow(f)
	l.finish(4, flushPatience)
	if len(said) != 1 || said[0] != "refusals cannot be written to --violations=v: no space left on device" {
		t.Errorf("%q", said)
	}
	// 2 is not written, nor the loss of it, nor 3; then there is room. What was torn is on lines of its own.
	lines := strings.Split(out.String(), "\n")
	whole := slices.DeleteFunc(lines, func(line string) bool { return len(line) < 2 })
	if got := shape(t, strings.Join(whole, "\n")); !slices.Equal(got, []string{"1", "lost 2 reader", "4"}) {
		t.Errorf("%q", got)
	}
}

func TestAReaderThatDoesNotReadIsNotWaitedFor(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var said []string
	l := &violationLog{target: "fd:9", out: w, warn: func(s string) { said = append(said, s) }}
	f := newFake()
	ten := make(chan struct{})
	f.watched = func(yield func(runtime.Violation) bool) {
		for seq := uint64(1); yield(runtime.Violation{Seq: seq, Op: "openat", Line: strings.Repeat("x", 1000)}); seq++ {
			if seq == 10 {
				close(ten)
			}
		}
	}
	l.follow(f)
	<-ten
	l.finish(1<<20, 0)
	if len(said) != 1 || !strings.Contains(said[0], "refusals could not be written to --violations=fd:9: its reader does not read") {
		t.Errorf("%q", said)
	}
}

func event(host string) violation.Event {
	return violation.Event{Operation: violation.NetworkOutbound, Target: host + ":443", Rule: "network.allowedDomains", Reason: "host is not on the allow list"}
}

func TestSummaryAfterAFailure(t *testing.T) {
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		events []violation.Event
		want   string
	}{
		{"nothing was refused", nil, 3, nil, ""},
		{"the command succeeded", nil, 0, []violation.Event{event("a.test")}, ""},
		{"--quiet", []string{"--quiet"}, 3, []violation.Event{event("a.test")}, ""},
		{"-q", []string{"-q"}, 3, []violation.Event{event("a.test")}, ""},
		{"one", nil, 3, []violation.Event{event("a.test")}, "srt: the sandbox refused 1 operation, which may be why the command failed:\n" +
			"srt:   network-outbound a.test:443 (host is not on the allow list); network.allowedDomains: add \"a.test\"\n" + unwatchedBeside},
		{"watched", []string{"--violations=" + os.DevNull}, 3, []violation.Event{event("a.test")}, "srt: the sandbox refused 1 operation, which may be why the command failed:\n" +
			"srt:   network-outbound a.test:443 (host is not on the allow list); network.allowedDomains: add \"a.test\"\n"},
		{"most frequent first, cleaned", nil, 1, []violation.Event{event("a.test"), event("b.test"), event("b.test"), {Operation: "openat", Target: "/\x1b[2J", Rule: "srt's own file"}},
			"srt: the sandbox refused 4 operations, which may be why the command failed:\n" +
				"srt:   2 x network-outbound b.test:443 (host is not on the allow list); network.allowedDomains: add \"b.test\"\n" +
				"srt:   network-outbound a.test:443 (host is not on the allow list); network.allowedDomains: add \"a.test\"\n" +
				"srt:   openat / [2J; nothing in the settings allows it: srt's own file is not for commands\n" + unwatchedBeside},
		{"one setting for several", nil, 1, []violation.Event{{Operation: "mkdir", Target: "/w/a", Rule: "filesystem.allowWrite"}, {Operation: "mkdir", Target: "/w/b", Rule: "filesystem.allowWrite"}},
			"srt: the sandbox refused 2 operations, which may be why the command failed:\n" +
				"srt:   2 x mkdir /w/a and others; filesystem.allowWrite: add \"/w\"\n" + unwatchedBeside},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake()
			f.onWait = func() {
				for _, e := range tc.events {
					f.opts.violation(e)
				}
			}
			f.ended <- &exitError{code: tc.status}
			if tc.status == 0 {
				<-f.ended
				f.ended <- nil
			}
			status, stdout, stderr := cli(t, f, append(tc.args, "x")...)
			if status != tc.status || stdout != "" || stderr != tc.want {
				t.Errorf("%d, %q,\ngot  %q\nwant %q", status, stdout, stderr, tc.want)
			}
		})
	}
}

// That nobody watches the files is said alone to a person only, and only where a refused file can have been the cause.
func TestSummaryOfNothing(t *testing.T) {
	off := filepath.Join(t.TempDir(), "off.json")
	const text = `{"network":{"allowedDomains":[],"deniedDomains":[]},"filesystem":{"disabled":true,"denyRead":[],"allowWrite":[],"denyWrite":[]}}`
	if err := os.WriteFile(off, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		args   []string
		person bool
		status int
		want   string
	}{
		{"a person", nil, true, 3, unwatchedAlone},
		{"a program", nil, false, 3, ""},
		{"success", nil, true, 0, ""},
		{"not executed", nil, true, 126, ""},
		{"not found", nil, true, 127, ""},
		{"a signal", nil, true, 130, ""},
		{"--quiet", []string{"-q"}, true, 3, ""},
		{"watched", []string{"--violations=" + os.DevNull}, true, 3, ""},
		{"no rules about files", []string{"-s", off}, true, 3, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake()
			f.ended <- nil
			if tc.status != 0 {
				<-f.ended
				f.ended <- &exitError{code: tc.status}
			}
			var errs bytes.Buffer
			home := t.TempDir()
			a := &app{stdout: io.Discard, stderr: &errs, open: f.open, grace: time.Millisecond, person: func() bool { return tc.person },
				getenv: func(name string) string { return map[string]string{homeVariable(): home}[name] }}
			if status := a.run(append(tc.args, "x")); status != tc.status || errs.String() != tc.want {
				t.Errorf("%d, got %q, want %q", status, errs.String(), tc.want)
			}
		})
	}
}

func TestSummaryIsShort(t *testing.T) {
	var r refusals
	for i := range summaryKinds + 50 {
		r.note(event(fmt.Sprintf("h%d.test", i)))
	}
	r.note(event("h3.test"))
	var out bytes.Buffer
	r.write(&out, false)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1+summaryLines+1 || len(r.seen) != summaryKinds {
		t.Fatalf("%d lines, %d kinds:\n%s", len(lines), len(r.seen), out.String())
	}
	if !strings.Contains(lines[1], "2 x network-outbound h3.test") || !strings.Contains(lines[2], " h0.test") {
		t.Errorf("%s", out.String())
	}
	if want := fmt.Sprintf("and %d more (", summaryKinds+51-summaryLines-1); !strings.Contains(lines[9], want) {
		t.Errorf("%q, want %q", lines[9], want)
	}
}
