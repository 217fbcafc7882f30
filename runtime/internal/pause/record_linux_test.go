package pause

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// runner is a process below another that counts up in a shared file each time it is continued, and stops itself at once.
const runner = "SRT_PAUSE_TEST_RUNNER"

func TestMain(m *testing.M) {
	if path := os.Getenv(runner); path != "" {
		counted, err := mapped(path)
		if err != nil {
			os.Exit(1)
		}
		for {
			counted[0]++
			_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
		}
	}
	if program := os.Getenv(hiding); program != "" {
		if err := helpHiding(program); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// mapped is a page that is shared by all who map the file.
func mapped(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// startRunner starts a runner below a shell, and returns that, the runner, and what it counts in.
func startRunner(t *testing.T) (root, pid int, counted []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "counted")
	counted, err := mapped(path)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `"$0" & wait`, self)
	cmd.Env = append(os.Environ(), runner+"="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(20 * time.Second); counted[0] == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the runner never runs")
		}
	}
	list, err := descendants(cmd.Process.Pid)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	return cmd.Process.Pid, list[0].pid, counted
}

// However shortly a process has run, and however near to the look, that is noticed.
func TestStoodStill_NoticesTheShortestRun(t *testing.T) {
	root, pid, counted := startRunner(t)
	ran, still := 0, 0
	for round := 0; round < 60; round++ {
		p, err := below(t, root)
		if err != nil {
			t.Fatal(err)
		}
		before := counted[0]
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
			_ = unix.Kill(pid, unix.SIGCONT)
		}()
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		hasRun := counted[0] != before
		err = p.StoodStill()
		switch {
		case hasRun && !errors.Is(err, ErrRan):
			t.Errorf("it ran, and StoodStill says %v", err)
		case err != nil && !errors.Is(err, ErrRan):
			t.Error(err)
		case hasRun:
			ran++
		case err == nil:
			still++
		}
		<-sent
		if err := p.Resume(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("noticed %d runs, %d rounds without", ran, still)
	if ran == 0 {
		t.Error("it never ran in time: nothing was tested")
	}
}

func TestStoodStill(t *testing.T) {
	for _, tc := range []struct {
		name   string
		script string
		while  func(t *testing.T, list []process) // paused
		want   error
	}{
		{"nothing happens", `sleep 1000 & sh -c 'kill -STOP $$' &`, func(*testing.T, []process) {}, nil},
		{"signals that a stopped process only keeps", `sleep 1000 &`, func(t *testing.T, list []process) {
			signal(t, list[0].pid, unix.SIGUSR1)
			signal(t, list[0].pid, unix.SIGSTOP)
		}, nil},
		{"continued", `sleep 1000 &`, func(t *testing.T, list []process) { signal(t, list[0].pid, unix.SIGCONT) }, ErrRan},
		{"continued and stopped", `sleep 1000 &`, func(t *testing.T, list []process) {
			signal(t, list[0].pid, unix.SIGCONT)
			time.Sleep(time.Millisecond)
			signal(t, list[0].pid, unix.SIGSTOP)
		}, ErrRan},
		{"killed", `sleep 1000 & sleep 1000 &`, func(t *testing.T, list []process) { signal(t, list[1].pid, unix.SIGKILL) }, ErrRan},
		{"what had been stopped before is continued", `sh -c 'kill -STOP $$; sleep 1000' &`, func(t *testing.T, list []process) {
			signal(t, list[0].pid, unix.SIGCONT)
		}, ErrRan},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root, _ := family(t, tc.script+" sleep 0.2; echo ready; read x")
			p, err := below(t, root)
			if err != nil {
				t.Fatal(err)
			}
			list, err := descendants(root)
			if err != nil {
				t.Fatal(err)
			}
			tc.while(t, list)
			if err := p.StoodStill(); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
			if err := p.Resume(); err != nil {
				t.Error(err)
			}
		})
	}
}

func signal(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := unix.Kill(pid, sig); err != nil {
		t.Error(err)
	}
}

// What a thread can arrange for itself is not all that is compared.
func TestRecord_Difference(t *testing.T) {
	base := func() record {
		return record{7: {started: 1, faults: "5 0 0 0", threads: map[int]trace{7: {'T', 1, "3 4", "100 0 7"}, 8: {'T', 2, "1 1", "50 0 2"}}}}
	}
	for name, change := range map[string]func(record){
		"another program by another thread, with the same counts of switches": func(r record) {
			a := r[7]
			a.faults = "25 0 0 0"
			r[7] = a
		},
		"a thread with its number and counts, later": func(r record) { r[7].threads[8] = trace{'T', 5, "1 1", "50 0 2"} },
		"switched":                     func(r record) { r[7].threads[8] = trace{'T', 2, "2 1", "50 0 2"} },
		"ran for another nanosecond":   func(r record) { r[7].threads[8] = trace{'T', 2, "1 1", "51 0 2"} },
		"runs":                         func(r record) { r[7].threads[8] = trace{'R', 2, "1 1", "50 0 2"} },
		"a thread has ended":           func(r record) { delete(r[7].threads, 8) },
		"a thread is new":              func(r record) { r[7].threads[9] = trace{'T', 2, "1 1", "50 0 2"} },
		"another process, same number": func(r record) { a := r[7]; a.started = 3; r[7] = a },
		"a process has ended":          func(r record) { delete(r, 7) },
		"a process is new":             func(r record) { r[9] = account{} },
	} {
		now := base()
		if pid := base().difference(now); pid != 0 {
			t.Fatalf("the same differ in %d", pid)
		}
		change(now)
		if base().difference(now) == 0 {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func TestSwitchesOf(t *testing.T) {
	for _, tc := range []struct{ name, status, want string }{
		{"plain", "Name:\tsh\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n", "12 3"},
		{"a name like a line", "Name:\tvoluntary_ctxt_switches:\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n", "12 3"},
		{"missing", "Name:\tsh\nvoluntary_ctxt_switches:\t12\n", ""},
		{"empty", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := switchesOf([]byte(tc.status)); got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func sameLetters(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return string(x) == string(y)
}

// One that has ended is not stopped: news of its stop that comes after its end stops nobody. Whether it was waited for makes no
// difference.
func TestChildNotStopped(t *testing.T) {
	root, _ := family(t, `sh -c 'kill -STOP $$' & sleep 1000 &
		sh -c 'while [ "$(tr -d "\0" < /proc/$PPID/cmdline)" != sleep1000 ]; do :; done' & # its parent then waits for nobody
		echo ready; exec sleep 1000`)
	id, err := Identify(root)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); !sameLetters(states(t, root), "STZ"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the children are %s", states(t, root))
		}
	}
	list, err := descendants(root)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[byte]bool{}
	for _, p := range list {
		within := numbersWithin(p.pid)
		inner, err := strconv.Atoi(within[len(within)-1])
		if err != nil {
			t.Fatal(err)
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
		if err != nil {
			t.Fatal(err)
		}
		state, _, err := parseStat(line)
		if err != nil {
			t.Fatal(err)
		}
		seen[state] = true
		if got, want := id.ChildNotStopped(inner), state != 'T'; got != want {
			t.Errorf("process %d in state %c: %v, want %v", p.pid, state, got, want)
		}
	}
	if !seen['T'] || !seen['S'] || !seen['Z'] {
		t.Errorf("there were not all states: %v", seen)
	}
	if !id.ChildNotStopped(1 << 30) {
		t.Error("one that has ended and was waited for is taken for stopped")
	}
	if !(Identity{pid: root, started: id.started + 1}).ChildNotStopped(2) {
		t.Error("the child of one that has ended is taken for stopped")
	}
}
