package main

import (
	"path"
	"slices"
	"testing"

	"github.com/srt-sandbox/srt/runtime/modetable"
)

// TestJudge: a run is as its tests are, less what is excused; what is excused has to fail, and by a row that says so.
func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name      string
		events    []event
		excuses   []excuse
		unexcused []name
		idle      int
		baseless  int
	}{
		{name: "all pass", events: []event{{Action: "pass", Package: module + "test", Test: "TestA"}, {Action: "pass", Package: module + "test"}}},
		{name: "a subtest fails", events: []event{
			{Action: "fail", Package: module + "test", Test: "TestA/root"}, {Action: "pass", Package: module + "test", Test: "TestA/user"},
			{Action: "fail", Package: module + "test", Test: "TestA"}, {Action: "fail", Package: module + "test"}},
			unexcused: []name{{"test", "TestA/root"}}},
		{name: "a package fails by itself", events: []event{{Action: "pass", Package: module + "test", Test: "TestA"}, {Action: "fail", Package: module + "test"}},
			unexcused: []name{{"test", ""}}},
		{name: "excused", events: []event{{Action: "fail", Package: module + "test", Test: "TestA/root/x"}, {Action: "fail", Package: module + "test", Test: "TestA"}},
			excuses: []excuse{{"test", "TestA/*/x", "mask", "x"}}},
		{name: "excused in another package", events: []event{{Action: "fail", Package: module + "test/escape", Test: "TestA"}},
			excuses: []excuse{{"test", "TestA", "mask", "x"}}, unexcused: []name{{"test/escape", "TestA"}}},
		{name: "excused for nothing", events: []event{{Action: "pass", Package: module + "test", Test: "TestA"}},
			excuses: []excuse{{"test", "TestA", "mask", "x"}}, idle: 1},
		{name: "excused and skipped", events: []event{{Action: "skip", Package: module + "test", Test: "TestA"}}, excuses: []excuse{{"test", "TestA", "mask", "x"}}},
		{name: "excused by what holds", events: []event{{Action: "fail", Package: module + "test", Test: "TestA"}},
			excuses: []excuse{{"test", "TestA", "locks", "x"}}, baseless: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := newVerdicts()
			for _, e := range tt.events {
				v.add(e)
				v.add(event{Action: "output", Package: e.Package, Test: e.Test, Output: "x"})
			}
			j := judge("confined", v, tt.excuses)
			if !slices.Equal(j.unexcused, tt.unexcused) || len(j.idle) != tt.idle || len(j.baseless) != tt.baseless {
				t.Errorf("got %+v, want unexcused %v, %d idle, %d baseless", j, tt.unexcused, tt.idle, tt.baseless)
			}
			if want := len(tt.unexcused)+tt.idle+tt.baseless == 0; j.ok() != want {
				t.Errorf("ok: got %v, want %v", j.ok(), want)
			}
		})
	}
}

// TestFits: an excuse is for what a test says, and for nothing worse.
func TestFits(t *testing.T) {
	for _, tt := range []struct {
		says, output string
		want         bool
	}{
		{"", "the settings cannot be held:\n no (docs/modes.md: mask)\n", true},
		{"", "the settings cannot be held:\n no (docs/modes.md: hide-many)\n", false},
		{"names show", "the names show", true},
		{"names show", "the names show\nESCAPE: so does the text", false},
		{"ESCAPE: names show", "ESCAPE: names show", true},
	} {
		if got := (excuse{row: "mask", says: tt.says}).fits(tt.output); got != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}

// TestExcuses: each excuse has a row that gives it, and a pattern that can be matched.
func TestExcuses(t *testing.T) {
	for mode, list := range excuses {
		for _, e := range list {
			if _, ok := modetable.Excused(mode, e.row); !ok {
				t.Errorf("mode %s: %+v: the row says nothing that differs", mode, e)
			}
			if _, err := path.Match(e.test, ""); err != nil {
				t.Errorf("mode %s: %+v: %v", mode, e, err)
			}
		}
	}
}
