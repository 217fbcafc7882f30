package runtime

import (
	"slices"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// launched is what a launch needs of the trust.
type launched struct {
	shown     []string          // files that every command can read and none can write (TLS-9), absolute
	dirs      []string          // directories in which no command can make, change or remove anything (TLS-8), absolute
	hidden    []string          // files that no command can open (TLS-9), absolute
	variables []policy.Variable // that lead programs to the bundle (TLS-14)
	java      string            // options that lead JVMs to it
}

// launch is what a launch needs: nothing where TLS is not terminated.
func (t *trust) launch() (l launched, err error) {
	if t == nil {
		return l, nil
	}
	w, err := t.written()
	if err != nil {
		return l, err
	}
	l.shown, l.hidden, l.java = slices.Clone(t.certificates), t.keys, w.files.JavaOptions()
	l.dirs = []string{w.files.Dir}
	for _, path := range []string{w.files.Bundle, w.files.CA, w.files.Java} {
		if path != "" {
			l.shown = append(l.shown, path)
		}
	}
	for _, v := range w.files.Environment() {
		l.variables = append(l.variables, policy.Variable(v))
	}
	return l, nil
}
