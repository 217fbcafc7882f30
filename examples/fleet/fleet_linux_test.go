package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program is the path of the example, which the commands in the sandbox are as well.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "fleet")
	code := 1
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Printf("go build: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestLIB31_EachCommandReachesItsOwnHosts: commands run at once, each reaches its host and no other, and the stream has every
// refusal under the command it belongs to.
func TestLIB31_EachCommandReachesItsOwnHosts(t *testing.T) {
	f := fleet{commands: 20, workers: 4, hosts: 3, program: program}
	r, err := f.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.streamed) != f.commands || r.missed != 0 {
		t.Errorf("refusals of %d commands were streamed, %d missed", len(r.streamed), r.missed)
	}
	for key, n := range r.streamed {
		if key == "" || n != 1 {
			t.Errorf("%d refusals under the key %q", n, key)
		}
	}
	var said strings.Builder
	r.print(&said)
	if !strings.HasPrefix(said.String(), "20 commands by 4 workers, 3 hosts: ") ||
		!strings.HasSuffix(said.String(), "\ncommands that were refused 1: 20\nrefusals that the stream missed: 0\n") {
		t.Errorf("it says:\n%s", &said)
	}
}

// TestTheWholeProgram runs it as a person does.
func TestTheWholeProgram(t *testing.T) {
	out, err := exec.Command(program, "-n", "5", "-workers", "2", "-hosts", "2").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "commands that were refused 1: 5\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLIB17_AnEndInBetween: what ends the context ends the fleet with that cause.
func TestLIB17_AnEndInBetween(t *testing.T) {
	enough := errors.New("enough")
	for _, after := range []int{0, 1, 3} {
		ctx, cancel := context.WithCancelCause(t.Context())
		f := fleet{commands: 1 << 30, workers: 2, hosts: 2, program: program}
		ended := make(chan error)
		go func() {
			_, err := f.run(ctx)
			ended <- err
		}()
		for range after {
			if _, err := (fleet{commands: 1, workers: 1, hosts: 2, program: program}).run(t.Context()); err != nil {
				t.Error(err)
			}
		}
		cancel(enough)
		if err := <-ended; !errors.Is(err, enough) {
			t.Errorf("after %d: %v", after, err)
		}
	}
}

// TestACommandThatGoesWrongEndsAll: the first error is the fleet's.
func TestACommandThatGoesWrongEndsAll(t *testing.T) {
	for program, want := range map[string]string{
		"/bin/false":           "exit status 1",
		"/bin/true":            `it got "", want`,
		"/nonexistent/program": "/nonexistent/program",
	} {
		f := fleet{commands: 1 << 30, workers: 2, hosts: 2, program: program}
		if _, err := f.run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", program, err)
		}
	}
}

func TestOptions(t *testing.T) {
	f, err := parse([]string{"-n", "7", "-hosts", "2"}, t.Output())
	if err != nil || f.commands != 7 || f.workers != 8 || f.hosts != 2 || !filepath.IsAbs(f.program) {
		t.Errorf("%+v, %v", f, err)
	}
	for _, args := range []string{"-n 0", "-workers 0", "-hosts 1", "-n x", "more"} {
		if _, err := parse(strings.Fields(args), t.Output()); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
}

// TestPrint: commands are counted by how many refusals each had.
func TestPrint(t *testing.T) {
	r := result{fleet: fleet{commands: 5, workers: 1, hosts: 2}, took: 2e9, streamed: map[string]int{"a": 1, "b": 3, "c": 1}, missed: 2}
	var said strings.Builder
	r.print(&said)
	want := fmt.Sprintf("%s\n%s\n%s\n%s\n%s\n", "5 commands by 1 workers, 2 hosts: 2.00s, 2 commands a second",
		"commands that were refused 0: 2", "commands that were refused 1: 2", "commands that were refused 3: 1",
		"refusals that the stream missed: 2")
	if said.String() != want {
		t.Errorf("%s", &said)
	}
}
