package main

import (
	"os"
	"strings"
	"testing"
)

// TestLIB11_TheFirstProgram: it runs a command, and the status is the command's.
func TestLIB11_TheFirstProgram(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, err := run(t.Context(), []string{"sh", "-c", "echo x >made; exit 3"}); code != 3 || err != nil {
		t.Errorf("status %d, %v", code, err)
	}
	if text, err := os.ReadFile("made"); err != nil || string(text) != "x\n" {
		t.Errorf("the command has made %q, %v", text, err)
	}
	if code, err := run(t.Context(), []string{"touch", "/var/elsewhere"}); code != 1 || err != nil {
		t.Errorf("outside of the working directory: status %d, %v", code, err)
	}
	if _, err := run(t.Context(), nil); err == nil {
		t.Error("no command: no error")
	}
}

// TestTheGuideHasThisProgram: docs/library.md shows it as it is.
func TestTheGuideHasThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(program), "\npackage main\n")
	if !strings.Contains(string(guide), "```go\npackage main\n"+shown+"```\n") {
		t.Error("docs/library.md does not have examples/first/main.go from its package clause on")
	}
}
