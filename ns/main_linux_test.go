package ns

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
)

// TestMain checks at the end that no test left a descriptor open.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "hold-a-sandbox" {
		count, err := strconv.Atoi(os.Args[3])
		if err != nil {
			panic(err)
		}
		holdSandbox(os.Args[2], count)
	}
	if len(os.Args) > 3 && os.Args[1] == "hold-confined" {
		holdConfined(os.Args[2])
	}
	if len(os.Args) > 2 && os.Args[1] == "reach-out" {
		reachOut(os.Args[2])
	}
	if len(os.Args) > 3 && os.Args[1] == "hold-a-hand" {
		holdHand(os.Args[2])
	}
	// The runtime's poller opens descriptors of its own at the first pipe, and keeps them.
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
	before := openFiles()
	code := m.Run()
	if after := openFiles(); code == 0 && after > before {
		fmt.Fprintf(os.Stderr, "%d descriptors were open before the tests and %d are now\n", before, after)
		code = 1
	}
	os.Exit(code)
}

func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(list)
}

// identity is the identity map of the test's own user.
func identity() (uids, gids []IDMap) {
	u, g := uint32(os.Geteuid()), uint32(os.Getegid())
	return []IDMap{{u, u, 1}}, []IDMap{{g, g, 1}}
}

// launch is a program, the process it is for, and the command.
type launch struct {
	Config
	Command
	program *Program
	ready   chan struct{} // closed when the program is written; nil: it is
}

// minimal is the least that starts a command.
func minimal(p *Program, args ...string) *launch {
	u, g := identity()
	return &launch{Config{Namespaces: Full, UIDs: u, GIDs: g, DenySetgroups: true},
		Command{Candidates: []string{args[0]}, Args: args, Env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}}, p, nil}
}

func newProgram(t testing.TB) *Program {
	t.Helper()
	p, err := NewProgram()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (l *launch) start() (*Process, error) {
	p, err := Prepare(&l.Config, l.program)
	if l.ready != nil {
		<-l.ready
	}
	if err != nil {
		l.program.Release()
		return nil, err
	}
	return p.Start(&l.Command)
}

// output gives the command a pipe as standard output and error, and nothing to read. The caller closes the writing end when
// the command has started.
func (l *launch) output(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		null.Close()
	})
	l.Stdin, l.Stdout, l.Stderr = null, w, w
	return r, w
}

// run starts a configuration with a pipe as standard output and error, and gives what was printed and how it ended.
func run(t testing.TB, c *launch) (string, Status, error) {
	t.Helper()
	r, w := c.output(t)
	p, err := c.start()
	w.Close()
	if err != nil {
		return "", Status{}, err
	}
	defer closeFiles(p)
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	st, err := p.Wait()
	return string(out), st, err
}

func closeFiles(p *Process) {
	for _, f := range p.Files {
		if f != nil {
			f.Close()
		}
	}
}
