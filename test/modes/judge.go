package main

import (
	"path"
	"strings"

	"github.com/srt-sandbox/srt/runtime/modetable"
)

// event is what go test -json prints, a line each, as far as it matters (go doc test2json).
type event struct {
	Action, Package, Test, Output string
}

// name is a test of a package, which is named by its path beneath the module.
type name struct{ pkg, test string }

// verdicts are what became of each test, and what it printed.
type verdicts struct {
	outcome map[name]string // "pass", "fail" or "skip"; a package has the name ""
	output  map[name][]string
}

func newVerdicts() *verdicts {
	return &verdicts{outcome: map[name]string{}, output: map[name][]string{}}
}

func (v *verdicts) add(e event) {
	n := name{strings.TrimPrefix(e.Package, module), e.Test}
	switch e.Action {
	case "pass", "fail", "skip":
		v.outcome[n] = e.Action
	case "output":
		v.output[n] = append(v.output[n], e.Output)
	}
}

// failures are the tests that failed by themselves: not those of which only a subtest did, and a package only where no test of it did.
func (v *verdicts) failures() []name {
	parents := map[name]bool{}
	for n, outcome := range v.outcome {
		if outcome != "fail" || n.test == "" {
			continue
		}
		parents[name{n.pkg, ""}] = true
		for t := n.test; strings.Contains(t, "/"); {
			t = path.Dir(t)
			parents[name{n.pkg, t}] = true
		}
	}
	var list []name
	for n, outcome := range v.outcome {
		if outcome == "fail" && !parents[n] {
			list = append(list, n)
		}
	}
	return list
}

// excuse lets tests fail in a mode.
type excuse struct {
	pkg string
	// test is a test with its subtests. Each part of the name may be a pattern (path.Match), as for the accounts: "TestX/*/part".
	test string
	row  string // of docs/modes.md
	// says is a text that each failure must have printed. Empty, it is what srt says of the row where it refuses the start.
	says string
}

// fits tells whether what a failed test printed is what it is excused for. An escape is excused by that word alone.
func (e excuse) fits(output string) bool {
	says := e.says
	if says == "" {
		says = "(docs/modes.md: " + e.row + ")"
	}
	return strings.Contains(output, says) && (strings.HasPrefix(says, escape) || !strings.Contains(output, escape))
}

// escape is how the escape suite begins what is the matter.
const escape = "ESCAPE"

// covers tells whether a test is the excused one or beneath it.
func (e excuse) covers(n name) bool {
	want, got := strings.Split(e.test, "/"), strings.Split(n.test, "/")
	if e.pkg != n.pkg || len(got) < len(want) {
		return false
	}
	for i, w := range want {
		if ok, err := path.Match(w, got[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// judged is a run: what failed without an excuse, and excuses that were not needed, or that the page does not give.
type judged struct {
	unexcused []name
	idle      []excuse
	baseless  []excuse
	excused   int
}

func (j judged) ok() bool { return len(j.unexcused)+len(j.idle)+len(j.baseless) == 0 }

// judge holds a run in a mode against its excuses.
func judge(mode string, v *verdicts, excuses []excuse) judged {
	var j judged
	used := make([]bool, len(excuses))
	for _, n := range v.failures() {
		excused := false
		for i, e := range excuses {
			if e.covers(n) && e.fits(strings.Join(v.output[n], "")) {
				used[i], excused = true, true
			}
		}
		if excused {
			j.excused++
		} else {
			j.unexcused = append(j.unexcused, n)
		}
	}
	for i, e := range excuses {
		if _, ok := modetable.Excused(mode, e.row); !ok {
			j.baseless = append(j.baseless, e)
		}
		if !used[i] && v.passed(e) {
			j.idle = append(j.idle, e)
		}
	}
	return j
}

// passed tells whether any test of an excuse passed, where none failed: where all are skipped, or left out of this run, nothing is known.
func (v *verdicts) passed(e excuse) bool {
	for n, outcome := range v.outcome {
		if outcome == "pass" && e.covers(n) {
			return true
		}
	}
	return false
}
