package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime"
)

// Why denies what asks about "denied", and fails for "broken".
func (f *fake) Why(_ context.Context, queries []runtime.Query) ([]runtime.Verdict, error) {
	var list []runtime.Verdict
	for _, q := range queries {
		if q.Target == "broken" {
			return nil, errTest
		}
		v := runtime.Verdict{Kind: q.Kind, Target: q.Target, Allowed: q.Target != "denied", Notes: []string{"a note"}}
		if !v.Allowed {
			v.Rule, v.Entry, v.Reason, v.Advice = "filesystem.denyRead.0", "~/x", "a reason", "remove it"
		}
		list = append(list, v)
	}
	return list, nil
}

// errTest is what a fake fails with.
var errTest = &usageError{"it failed"}

// TestWhyAnswers: answers come in the order of the questions, and the status tells of refusals.
func TestWhyAnswers(t *testing.T) {
	tests := []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"allowed", []string{"--read", "a"}, 0, "read a: allowed\n  note: a note\n", ""},
		{"denied", []string{"--connect", "b", "--unix=denied"}, 3, "connect b: allowed\n  note: a note\n" +
			"unix denied: denied by filesystem.denyRead.0 (\"~/x\"): a reason\n  note: a note\n  to allow it: remove it\n", ""},
		{"failed", []string{"--write", "broken"}, 1, "", "Error: it failed\n"},
		{"no question", nil, 1, "", "error: explain why needs a question: "},
		{"a word", []string{"--read", "a", "b"}, 1, "", `error: explain why takes options alone, and "b" is none`},
		{"shell text", []string{"--read", "a", "-c", "x"}, 1, "", "error: explain why runs no command"},
		{"nothing named", []string{"--read", ""}, 1, "", "error: option '--read <path>' argument '' is invalid: it must name something"},
		{"no value", []string{"--connect"}, 1, "", "error: option '--connect <host[:port]>' argument missing"},
		{"unknown", []string{"--reed", "a"}, 1, "", "error: unknown option '--reed'"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := runWhy(t, test.args)
			if code != test.code || stdout != test.stdout || !strings.HasPrefix(stderr, test.stderr) || (test.stderr == "") != (stderr == "") {
				t.Errorf("status %d, %q, %q", code, stdout, stderr)
			}
		})
	}
}

// TestWhyJSON: the answers are one array of objects with the keys that runtime.Verdict has.
func TestWhyJSON(t *testing.T) {
	code, stdout, _ := runWhy(t, []string{"--json", "--read", "a", "--read", "denied"})
	var list []map[string]any
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list) != 2 || code != 3 {
		t.Fatalf("%v, status %d: %q", err, code, stdout)
	}
	if list[0]["allowed"] != true || list[1]["allowed"] != false || list[1]["rule"] != "filesystem.denyRead.0" || list[1]["kind"] != "read" {
		t.Errorf("%v", list)
	}
}

// TestWhyIsAWord: after "--", and anywhere but after explain, it is a command.
func TestWhyIsAWord(t *testing.T) {
	for _, args := range [][]string{{"explain", "--", "why", "--read", "x"}, {"exec", "why", "--read", "x"}, {"why", "--read", "x"}} {
		inv, err := parse(args)
		if err != nil || len(inv.questions) != 0 || len(inv.words) != 3 {
			t.Errorf("%q: %+v, %v", args, inv, err)
		}
	}
}

func runWhy(t *testing.T, args []string) (code int, stdout, stderr string) {
	t.Helper()
	return cli(t, newFake(), append([]string{"explain", "why"}, args...)...)
}
