package bpf

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// FS-30, FS-38: the kernel and a plain model agree about a rule and a name, whatever their bytes.
func FuzzJudge_FS30(f *testing.F) {
	k := newTestKernel(f)
	dir := mkdirs(f)
	prog, here, namespace := k.load(f, "ask"), place(f, k, dir), startChild(f, 0).namespace
	f.Add("new", "new", false)
	f.Add(".BashRC", ".bASHrc", true)
	f.Add("hooks", "HOO\u212aS", true)
	f.Add(strings.Repeat("n", 255), strings.Repeat("n", 256), false)
	f.Fuzz(func(t *testing.T, rule, name string, fold bool) {
		if len(name) > nameSize || strings.Contains(name, "\x00") {
			return // no name of a file, or none that fits into the question
		}
		s, err := k.Session(namespace, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Add([]Rule{ruleFor(t, dir, rule, fold)}); err != nil {
			if !errors.Is(err, ErrRule) {
				t.Fatal(err)
			}
			return
		}
		want := name == rule
		if small := strings.ToLower; fold {
			want = small(name) == small(rule)
		}
		if got := ask(t, prog, s.id, here, name, false); got != want {
			t.Errorf("rule %q (fold %v), name %q: refused = %v", rule, fold, name, got)
		}
	})
}

// BenchmarkLoad is what a process pays once: everything but attaching, with the hooks as programs of another type.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		set, err := newProgramSet()
		if err != nil {
			b.Skip(err)
		}
		for _, name := range hooks {
			l := set.loader
			l.kind = progRawTracepoint
			prog, err := l.program(name, set.object.programs[name])
			if err != nil {
				b.Fatal(err)
			}
			prog.Close()
		}
		set.close()
	}
}

// BenchmarkSupported is what every start with denied absent names pays to know.
func BenchmarkSupported(b *testing.B) {
	for b.Loop() {
		var typed *Unsupported
		if err := Supported(); err != nil && !errors.As(err, &typed) {
			b.Fatal(err)
		}
	}
}

// BenchmarkSession is what a sandbox pays, with few rules and with 10,000.
func BenchmarkSession(b *testing.B) {
	k := newTestKernel(b)
	namespace := startChild(b, 0).namespace
	for name, count := range map[string]int{"20": 20, "10000": 10000} {
		dir := mkdirs(b)
		rules := make([]Rule, count)
		for i := range rules {
			rules[i] = ruleFor(b, dir, "n"+strings.Repeat("x", i%100)+string(rune('a'+i%26))+strconv.Itoa(i), false)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s, err := k.Session(namespace, nil)
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Add(rules); err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
