package differential

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/test/differential/internal/model"
	"github.com/srt-sandbox/srt/test/programs/stage"
)

// confinedCases is how many cases TestConfined goes through.
const confinedCases = 60

// TestConfined: without namespaces and mounts (docs/modes.md) the write rules come to the same, answers included, as every
// account. What is hidden differs there by the table of that page (deny-read, names-beside-hidden, hidden-writable), so these cases
// hide nothing.
func TestConfined(t *testing.T) {
	seed, count := number(t, "SRT_DIFF_SEED", defaultSeed), number(t, "SRT_CONFINED_COUNT", confinedCases)
	done, refused := counts.ok.Load(), counts.refused.Load()
	for i := range count {
		who := accounts[i%uint64(len(accounts))]
		d := newDraw(seed+2000, i)
		sc := d.scenario(who.Root())
		sc.Confined = true
		sc.Policy.DenyRead, sc.Policy.AllowRead, sc.Policy.Credential = nil, nil, nil
		out, err := run(who, sc, d.ops(sc, opsOfACase))
		if err != nil {
			t.Fatalf("seed %d, case %d: %v", seed, i, err)
		}
		if out.difference != "" {
			sc.Ops = out.ops
			sc, difference := shrink(who, sc, out.difference, shrinkRuns)
			t.Fatalf("seed %d, case %d:\n%s", seed, i, report(who, sc, difference))
		}
	}
	done, refused = counts.ok.Load()-done, counts.refused.Load()-refused
	if count >= 50 && (done < 5*int64(count) || refused < 2*int64(count)) {
		t.Errorf("the cases say little: of %d cases' operations, %d were done and %d refused", count, done, refused)
	}
}

// TestConfinedHidden: under policies that hide something, a command in mode confined is never let do what the model refuses, reads
// all that the model shows, and changes what the model says. It may be refused other things more (rows names-beside-hidden and
// hidden-writable of docs/modes.md). Names and attributes of what is hidden show (row attributes): operations that tell them are
// left out. A start that is refused for what cannot be hidden is no case.
func TestConfinedHidden(t *testing.T) {
	seed, count := number(t, "SRT_DIFF_SEED", defaultSeed), number(t, "SRT_CONFINED_COUNT", confinedCases)
	var said soundSaid
	for i := range count {
		who := accounts[i%uint64(len(accounts))]
		d := newDraw(seed+3000, i)
		sc := d.scenario(who.Root())
		sc.Confined = true
		fault, err := said.sound(who, sc, d.ops(sc, opsOfACase))
		if err != nil {
			t.Fatalf("seed %d, case %d: %v", seed, i, err)
		}
		if fault != "" {
			t.Fatalf("seed %d, case %d:\n%s", seed, i, report(who, sc, fault))
		}
	}
	if count >= 50 && (said.started < int(count)/10 || said.refusedStarts < int(count)/10 || said.refused < int(count)) {
		t.Errorf("the cases say little: %+v", said)
	}
}

// soundSaid counts what happened.
type soundSaid struct{ started, refusedStarts, done, refused int }

// leftOut are the operations that tell names and attributes.
var leftOut = []string{"stat", "lstat", "readlink"}

// sound does a case, and says what was let through that should not have been.
func (said *soundSaid) sound(who stage.Account, sc scenario, next drawer) (fault string, err error) {
	w, err := newWorld(who, sc.Items)
	if w != nil {
		defer func() { err = errors.Join(err, w.remove()) }()
	}
	if err != nil {
		return "", err
	}
	w.confined = true
	m, err := model.Start(sc.Items, sc.Policy, who.Root())
	if err != nil {
		return "", err
	}
	s, err := w.start(sc.Policy)
	if err != nil {
		return "", err
	}
	defer s.stop()
	for op, more := next(m); more; op, more = next(m) {
		want := m.Judge(op)
		if want.Open || slices.Contains(leftOut, op.Do) {
			continue
		}
		got, value, ended := s.ask(op)
		switch {
		case ended && strings.Contains(s.stderr.String(), "mode confined) the settings cannot be held"):
			said.refusedStarts++
			return "", nil
		case ended:
			return "the sandbox ended: " + s.stderr.String(), nil
		case got != "ok" && op.Do == "read" && want.OK && len(want.Errs) == 0:
			return fmt.Sprintf("%s: %s, want ok", say(op), got), nil
		case got != "ok":
			said.refused++
			continue
		case !want.OK:
			return fmt.Sprintf("%s: done, want %s", say(op), wanted(want)), nil
		case value != want.Value:
			return fmt.Sprintf("%s: got %q, want %q", say(op), value, want.Value), nil
		}
		said.done++
		m.Done(op)
	}
	said.started++
	s.stop()
	return w.compare(m)
}
