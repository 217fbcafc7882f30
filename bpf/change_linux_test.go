package bpf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// text is a change as a line.
func (c Change) text() string {
	s := fmt.Sprint(c.Kind, " ", c.Old.Path(), " ", c.New.Path(), " ", c.Target)
	if c.Directory {
		s += " directory"
	}
	return s
}

// VIO-10: each change of a name is in the history, in its order among the refusals, and no other call is.
func TestTracer_History_VIO10(t *testing.T) {
	tr, dir := newTracer(t), foreignDir(t)
	if err := os.Mkdir(filepath.Join(dir, "w"), 0o755); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "w")
	c := startChild(t, 0)
	c.must("chdir " + at)
	var got refusedRecorder
	trace, err := tr.Trace(c.namespace, TraceOptions{}, got.add)
	if err != nil {
		t.Fatal(err)
	}
	p := func(name string) string { return filepath.Join(at, name) }
	change := func(kind ChangeKind, old, made, target string) Change {
		c := Change{Kind: kind, Target: target}
		if old != "" {
			c.Old = TracedPath{Dir: at, Text: old}
		}
		if made != "" {
			c.New = TracedPath{Dir: at, Text: made}
		}
		return c
	}
	directory := change(ChangeGone, "d", "", "")
	directory.Directory = true
	var want []string
	for _, step := range []struct {
		line string
		is   *Change
	}{
		{"create f", nil}, {"mkdir d", nil}, {"mknod p", nil}, {"read f", nil}, {"read none", nil}, {"rename none other", nil},
		{"symlink l", pointerTo(change(ChangeLink, "", "l", "to"))},
		{"call symlinkat " + at + "|k", pointerTo(change(ChangeLink, "", "k", "target"))},
		{"link f g", pointerTo(change(ChangeName, "f", "g", ""))},
		{"rename l d/../m", pointerTo(change(ChangeMove, "l", "m", ""))},
		{"call renameat2 " + at + "|m d/n", pointerTo(change(ChangeMove, "m", "d/n", ""))},
		{"exchange f k", pointerTo(change(ChangeSwap, "f", "k", ""))},
		{"mkdir " + dir + "/closed/x", nil},
		{"unlink " + p("g"), pointerTo(change(ChangeGone, "g", "", ""))},
		{"unlink d/n", pointerTo(change(ChangeGone, "d/n", "", ""))},
		{"rmdir d", &directory},
	} {
		c.do(step.line)
		if step.is != nil {
			want = append(want, step.is.text())
		}
	}
	h := &trace.history
	end := h.Settle()
	var list []string
	for k := range end {
		list = append(list, h.At(k).text())
	}
	if !slices.Equal(list, want) {
		t.Errorf("%q,\nwant %q", list, want)
	}
	if !h.Known(0) {
		t.Error("something was lost")
	}
	if lost, err := trace.Close(); lost != 0 || err != nil {
		t.Errorf("%d lost, %v", lost, err)
	}
	refused := got.take()
	if len(refused) != 1 || refused[0].Since != 6 || refused[0].History != h {
		t.Errorf("%+v", refused)
	}
	if h.Settle() != end {
		t.Error("the end of the trace has changed what was")
	}
}

func pointerTo(c Change) *Change { return &c }
