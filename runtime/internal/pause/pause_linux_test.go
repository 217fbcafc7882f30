package pause

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long something may take that happens for sure.
const patience = 20 * time.Second

// family starts a shell script below a process of its own, and returns that process, what it prints, and how to wait for
// it. The script prints "ready" when it is.
func family(t *testing.T, script string) (root int, lines *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // open until Wait: "read x" waits
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p, err := descendants(cmd.Process.Pid)
		if err != nil {
			t.Error(err)
		}
		for _, d := range p {
			_ = unix.Kill(d.pid, unix.SIGKILL)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines = bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "ready" {
			return cmd.Process.Pid, lines
		}
	}
	t.Fatal("the script is never ready")
	return 0, nil
}

// states are the states of what is below a process.
func states(t *testing.T, root int) string {
	t.Helper()
	list, err := descendants(root)
	if err != nil {
		t.Fatal(err)
	}
	var s strings.Builder
	for _, p := range list {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
		if err != nil {
			continue
		}
		state, _, err := parseStat(line)
		if err != nil {
			t.Fatal(err)
		}
		s.WriteByte(state)
	}
	return s.String()
}

func TestBelow_StopsEveryGroupAndSessionAndLetsThemGoOn(t *testing.T) {
	root, _ := family(t, `
		setsid sleep 1000 &
		sh -c 'sleep 1000 & while :; do :; done' &
		(sleep 1000; :) &
		sleep 0.2; echo ready; read x`)
	p, err := below(t, root)
	if err != nil {
		t.Fatal(err)
	}
	if s := states(t, root); len(s) < 5 || strings.Trim(s, "T") != "" {
		t.Errorf("states %q while paused", s)
	}
	if s := stateOf(root); s == standing {
		t.Error("the root itself is stopped")
	}
	if err := p.Resume(); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(patience); strings.Contains(states(t, root), "T"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("states %q after Resume", states(t, root))
		}
	}
}

func TestBelow_LeavesAloneWhatWasStopped(t *testing.T) {
	root, _ := family(t, `sh -c 'kill -STOP $$' & sleep 1000 & sleep 0.2; echo ready; read x`)
	p, err := below(t, root)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Resume(); err != nil {
		t.Error(err)
	}
	if s := states(t, root); strings.Count(s, "T") != 1 {
		t.Errorf("states %q after Resume; one was stopped before", s)
	}
}

// A shell with job control hears nothing of the pause (wait(2), WUNTRACED).
func TestBelow_ShellsSeeNoStoppedJob(t *testing.T) {
	root, lines := family(t, `bash -c 'set -m; sleep 0.7 & echo ready; wait %1; echo status $?; jobs; echo end'; :`)
	p, err := below(t, root)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Resume(); err != nil {
		t.Error(err)
	}
	var got []string
	for lines.Scan() {
		if got = append(got, lines.Text()); lines.Text() == "end" {
			break
		}
	}
	for _, line := range got {
		if strings.Contains(line, "Stopped") {
			t.Errorf("the shell says %q", got)
		}
	}
	if len(got) == 0 || got[0] != "status 0" {
		t.Errorf("the shell says %q", got)
	}
}

// What multiplies is caught: a process that is told to stop cannot fork any more.
func TestBelow_StopsWhatMultiplies(t *testing.T) {
	root, _ := family(t, `sh -c 'while :; do sh -c "sleep 0.01; :" & sleep 0.001; done' & sleep 0.3; echo ready; read x`)
	p, err := below(t, root)
	if err != nil {
		t.Fatal(err)
	}
	before := states(t, root)
	time.Sleep(50 * time.Millisecond)
	if after := states(t, root); before != after || strings.Trim(after, "TZ") != "" {
		t.Errorf("states %q, then %q", before, after)
	}
	if err := p.Resume(); err != nil {
		t.Error(err)
	}
}

func TestBelow_Groups(t *testing.T) {
	root, _ := family(t, `setsid sh -c 'sleep 1000' & sleep 0.2; echo ready; read x`)
	p, err := below(t, root)
	if err != nil {
		t.Fatal(err)
	}
	list, err := descendants(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		if !p.HasGroup(d.group) {
			t.Errorf("group %d is not known", d.group)
		}
	}
	if p.HasGroup(1) {
		t.Error("a group of somebody else's is known")
	}
	if err := p.Resume(); err != nil {
		t.Error(err)
	}
}

func TestBelow_NothingThere(t *testing.T) {
	root, _ := family(t, `echo ready; read x`)
	p, err := below(t, root)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Resume(); err != nil {
		t.Error(err)
	}
}

// A number that is somebody else's by now is not taken for the process that had it.
func TestBelow_AnotherProcessOfTheSameNumber(t *testing.T) {
	root, _ := family(t, `sleep 1000 & echo ready; read x`)
	id, err := Identify(root)
	if err != nil {
		t.Fatal(err)
	}
	id.started--
	if p, err := Below(id); !errors.Is(err, ErrEnded) || p != nil {
		t.Errorf("%v, %v", p, err)
	}
	if s := states(t, root); strings.Contains(s, "T") {
		t.Errorf("states %q", s)
	}
	if _, err := Identify(1 << 30); err == nil {
		t.Error("a number that nobody has")
	}
}

func below(t *testing.T, root int) (*Paused, error) {
	t.Helper()
	id, err := Identify(root)
	if err != nil {
		t.Fatal(err)
	}
	return Below(id)
}

func TestParseStat(t *testing.T) {
	const rest = " 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0"
	for _, tc := range []struct {
		name, line string
		state      byte
		want       process
	}{
		{"plain", "5 (sh) S" + rest, 'S', process{pid: 5, parent: 7, group: 8, started: 4711}},
		{"a name like a line", "5 (a) R 1 1 1 (b) T" + rest, 'T', process{pid: 5, parent: 7, group: 8, started: 4711}},
		{"a line break in the name", "5 (a\nb) Z" + rest + "\n", 'Z', process{pid: 5, parent: 7, group: 8, started: 4711}},
		{"empty", "", 0, process{}},
		{"cut", "5 (sh) S 7 8", 0, process{}},
		{"no number", "x (sh) S" + rest, 0, process{}},
		{"turned round", "5 )sh( S" + rest, 0, process{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state, got, err := parseStat([]byte(tc.line))
			if state != tc.state || got != tc.want || (err == nil) != (tc.state != 0) || err != nil && !errors.Is(err, errStat) {
				t.Errorf("%q %+v %v", state, got, err)
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("5 (a) R 1 1 1 (b) T 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0"))
	f.Add([]byte("() "))
	f.Fuzz(func(t *testing.T, line []byte) {
		state, p, err := parseStat(line)
		if err != nil && (state != 0 || p != process{}) {
			t.Errorf("%q %+v beside %v", state, p, err)
		}
	})
}
