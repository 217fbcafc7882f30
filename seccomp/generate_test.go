package seccomp

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// generatedWith is the version of libseccomp whose output is committed. Others may order instructions differently.
const generatedWith = "2.5.4"

// The committed programs are what the rules and libseccomp give today, byte for byte. With another version of the
// library, what it gives must at least mean the same.
func TestGenerate_GivesTheCommittedPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles with cgo; not with -short")
	}
	generator := filepath.Join(t.TempDir(), "generate")
	build := exec.Command("go", "build", "-tags", "generate", "-o", generator, "./internal/generate")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		missing(t, "a C compiler and the headers of libseccomp", string(out))
	}
	version := strings.TrimSpace(run(t, generator, "-libseccomp-version"))
	folder := t.TempDir()
	run(t, generator, "-o", folder)
	if version != generatedWith {
		t.Logf("got libseccomp %s, want %s to compare bytes; comparing the meaning", version, generatedWith)
		testPrograms(t, folder)
		return
	}
	committed, err := filepath.Glob("filters/*.bpf")
	if err != nil || len(committed) != len(filterNames)*len(archNames) {
		t.Fatalf("%d committed programs (%v), want %d", len(committed), err, len(filterNames)*len(archNames))
	}
	for _, name := range committed {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(folder, filepath.Base(name)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the rules give; run go generate ./seccomp", name)
		}
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// missing ends a test that lacks a tool: a failure where the suite is meant to be complete, else a skip.
func missing(t testing.TB, want, got string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("want %s, got: %s", want, got)
	}
	t.Skipf("want %s, got: %s", want, got)
}
