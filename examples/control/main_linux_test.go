package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// CLI-32: the example opens a host for a command that runs, and closes it again.
func TestControl_CLI32(t *testing.T) {
	srt := filepath.Join(t.TempDir(), "srt")
	if out, err := exec.Command("go", "build", "-o", srt, "../../cmd/srt").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	t.Setenv("HOME", t.TempDir()) // no settings file
	var said strings.Builder
	if err := run(t.Context(), srt, &said); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`\Anothing is allowed: the running command gets 403
open localhost:\d+: the running command gets 200
close it again: the running command gets 403
\z`)
	if !want.MatchString(said.String()) {
		t.Errorf("it says:\n%s", &said)
	}
}

func TestAProgramThatIsNotThere(t *testing.T) {
	if err := run(t.Context(), "/nonexistent/srt", &strings.Builder{}); err == nil {
		t.Error("no error")
	}
}
