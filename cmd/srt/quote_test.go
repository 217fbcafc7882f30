package main

import (
	"os/exec"
	"strings"
	"testing"
)

func TestShellWords(t *testing.T) {
	tests := []struct {
		name  string
		words []string
		want  string
	}{
		{"CLI-8 plain words stay bare", []string{"FOO=1", "printenv", "a/b:c@d+e,f-g.h_9"}, "FOO=1 printenv a/b:c@d+e,f-g.h_9"},
		{"CLI-8 a leading equals sign", []string{"=ls"}, "'=ls'"},
		{"CLI-8 empty", []string{"x", ""}, "x ''"},
		{"CLI-8 spaces", []string{"a  b"}, "'a  b'"},
		{"CLI-8 quotes", []string{"it's", `"`}, `'it'\''s' '"'`},
		{"CLI-8 expansion", []string{"$HOME", "!!", "~", "*", "{a,b}"}, "'$HOME' '!!' '~' '*' '{a,b}'"},
		{"CLI-8 newline", []string{"a\nb"}, "'a\nb'"},
		{"CLI-9 one word is one name", []string{"echo a"}, "'echo a'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := shellWords(tt.words); got != tt.want {
				t.Errorf("shellWords(%q) = %q, want %q", tt.words, got, tt.want)
			}
		})
	}
}

// FuzzQuote asks a real bash: the quoted words come back as exactly these words (CLI-8).
func FuzzQuote(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("bash is not installed; make test installs it")
	}
	for _, seed := range []string{"a  b\x00$HOME\x00\x00it's", "!x\x00\"\\\n\t", "~\x00*\x00{a,b}\x00=x\x00-n", "\xff\xfe'\x80", "$(id)`id`"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, "\x00")
		out, err := exec.Command(bash, "-c", `printf '%s\0' `+shellWords(words)).Output()
		if err != nil {
			t.Fatalf("bash refused %q: %v", shellWords(words), err)
		}
		if got := strings.TrimSuffix(string(out), "\x00"); got != line {
			t.Errorf("bash read %q as %q, want %q", shellWords(words), got, line)
		}
	})
}
