package test

import (
	"slices"
	"strings"
)

// refused are the errors that are all acceptable for a refused write (FS-31).
var refused = []string{"EROFS", "EACCES", "EPERM"}

// check does each operation of the probe in one sandbox and wants its outcome. A line is "operation argument...: want",
// where want is "ok", "refused" (FS-31), the name of an errno, or several with "|" between them.
func (b *box) check(c cfg, lines ...string) result {
	b.t.Helper()
	return b.checkWith(func(args ...string) result { b.t.Helper(); return b.run(c, args...) }, lines...)
}

// checkWith is check with another way to start the sandbox.
func (b *box) checkWith(run func(args ...string) result, lines ...string) result {
	b.t.Helper()
	args := []string{probePath}
	for i, line := range lines {
		op, _, ok := strings.Cut(line, ": ")
		if !ok {
			b.t.Fatalf("no outcome in %q", line)
		}
		if i > 0 {
			args = append(args, ";")
		}
		args = append(args, strings.Fields(op)...)
	}
	r := run(args...)
	got := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
	if r.status != 0 || len(got) != len(lines) {
		b.t.Fatalf("the probe gave %d outcomes, want %d; %v", len(got), len(lines), r)
	}
	for i, line := range lines {
		op, want, _ := strings.Cut(line, ": ")
		accept := strings.Split(want, "|")
		if want == "refused" {
			accept = refused
		}
		if !slices.Contains(accept, got[i]) {
			b.t.Errorf("%s: got %s, want %s", op, got[i], want)
		}
	}
	return r
}
