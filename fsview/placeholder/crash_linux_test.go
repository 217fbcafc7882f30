package placeholder

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The child reads these: the field, what to do, after how many steps to die, and whether there are extended attributes.
const (
	envField    = "SRT_PLACEHOLDER_FIELD"
	envStep     = "SRT_PLACEHOLDER_STEP"
	envUnmarked = "SRT_PLACEHOLDER_UNMARKED"
	envWait     = "SRT_PLACEHOLDER_WAIT"
)

func TestMain(m *testing.M) {
	if root := os.Getenv(envField); root != "" {
		os.Exit(child(root))
	}
	os.Exit(m.Run())
}

var childNames = []string{".bashrc", ".vscode/", "commondir", "nd/x/y"}

// child holds and releases, and kills itself at a step.
func child(root string) int {
	last, err := strconv.Atoi(os.Getenv(envStep))
	if err != nil {
		return 3
	}
	step := 0
	crash = func(point string) {
		if step++; step == last {
			fmt.Fprintln(os.Stdout, point)
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	if os.Getenv(envUnmarked) != "" {
		withoutAttributes()
	}
	f := &field{state: filepath.Join(root, "state/srt"), project: filepath.Join(root, "p")}
	s, err := Hold(f.state, f.names(childNames...))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 4
	}
	if os.Getenv(envWait) != "" {
		fmt.Fprintln(os.Stdout, "held")
		io.Copy(io.Discard, os.Stdin)
	}
	if err := s.Release(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 5
	}
	return 0
}

func withoutAttributes() {
	setxattr = func(string, string, []byte, int) error { return unix.EOPNOTSUPP }
}

// command is a child for a field.
func (f *field) command(env ...string) *exec.Cmd {
	f.t.Helper()
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), append(env, envField+"="+filepath.Dir(f.project))...)
	cmd.Stderr = os.Stderr
	return cmd
}

// diesAt runs a child that kills itself at a step, and returns the step's name, "" when it ended before.
func (f *field) diesAt(step int, env ...string) string {
	f.t.Helper()
	out, err := f.command(append(env, envStep+"="+strconv.Itoa(step))...).Output()
	if err == nil {
		return ""
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		f.t.Fatalf("step %d: %v", step, err)
	}
	return strings.TrimSpace(string(out))
}

// FS-52, FS-54, case 29: killed between any two steps, the next start removes all of it, and nothing else.
func TestFS54_KilledBetweenAnyTwoSteps(t *testing.T) {
	// With a power cut, nothing of the journal is left but what was synced; where there are no marks more is synced.
	for name, env := range map[string][]string{"marked": nil, "unmarked": {envUnmarked + "=1"}, "power cut": nil} {
		t.Run(name, func(t *testing.T) {
			points := map[string]bool{}
			for step := 1; ; step++ {
				f := newField(t)
				f.write("users", "")
				before := f.tree()
				point := f.diesAt(step, env...)
				if point == "" {
					f.wantTree(before...)
					break
				}
				points[point] = true
				if name == "power cut" {
					f.keepMakeLines()
				}
				// The next start may want other names, or the same.
				if step%2 == 0 {
					f.sweep()
				} else {
					f.release(f.hold(childNames...))
				}
				f.wantTree(before...)
				f.wantForgotten()
				if t.Failed() {
					t.Fatalf("killed at step %d, %q", step, point)
				}
			}
			want := []string{"numbered", "recorded", "created", "marked", "written", "finished", "made", "releasing", "proven", "aside", "cleared"}
			if name == "unmarked" {
				want = append(want, "described")
			}
			for _, p := range want {
				if !points[p] {
					t.Errorf("no child died at %q; they died at %v", p, points)
				}
			}
		})
	}
}

// keepMakeLines leaves of the journal what is synced where objects are marked, as another boot finds it.
func (f *field) keepMakeLines() {
	f.t.Helper()
	journal := filepath.Join(f.state, journalName)
	data, err := os.ReadFile(journal)
	if errors.Is(err, os.ErrNotExist) || len(data) == 0 {
		return
	}
	if err != nil {
		f.t.Fatal(err)
	}
	var kept strings.Builder
	for l := range strings.Lines(string(otherBoot(data))) {
		if strings.Contains(l, " make ") {
			kept.WriteString(l)
		}
	}
	if err := os.WriteFile(journal, []byte(kept.String()), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// What a user does with the name of a placeholder whose maker was killed is the user's.
func TestFS54_KilledThenUsedByItsOwner(t *testing.T) {
	for step := 1; ; step++ {
		f := newField(t)
		if f.diesAt(step, envUnmarked+"=1") == "" {
			break
		}
		os.RemoveAll(f.path(".bashrc"))
		f.write(".bashrc", "")
		f.sweep()
		f.wantTree(`-rw-r--r-- .bashrc ""`)
		if t.Failed() {
			t.Fatalf("killed at step %d", step)
		}
	}
}

// A journal is cut at any byte after what was synced, or the blocks after that are zeros, and the machine has booted
// again: the numbers of devices may be others.
func TestFS54_PowerCut(t *testing.T) {
	for name, unmarked := range map[string]bool{"marked": false, "unmarked": true} {
		t.Run(name, func(t *testing.T) {
			if unmarked {
				defer func(set func(string, string, []byte, int) error) { setxattr = set }(setxattr)
				withoutAttributes()
			}
			f := newField(t)
			journal := filepath.Join(f.state, journalName)
			for n, whole := 0, false; !whole; n += 7 {
				die(f.hold("f", "d/"))
				data, err := os.ReadFile(journal)
				if err != nil {
					t.Fatal(err)
				}
				cut := syncedLength(data, unmarked) + n
				data = otherBoot(data)
				if whole = cut >= len(data); whole {
					cut = len(data)
				}
				if n%2 == 0 {
					clear(data[cut:])
				} else {
					data = data[:cut]
				}
				if err := os.WriteFile(journal, data, 0o600); err != nil {
					t.Fatal(err)
				}
				f.sweep()
				f.wantTree()
				f.wantForgotten()
				if t.Failed() {
					t.Fatalf("cut at byte %d of %d:\n%s", cut, len(data), data)
				}
			}
		})
	}
}

// syncedLength is how much of a journal is on the disk in any case: the make lines, and without marks the made lines of
// unfinished objects.
func syncedLength(journal []byte, unmarked bool) int {
	c := parse(journal)
	n := 0
	for _, r := range c.live() {
		n += len(r.makeLine())
		if unmarked {
			first := *r
			first.made = &evidence{id: r.made.id, mode: unfinishedFile, uid: r.made.uid, born: r.made.born, modified: r.made.modified}
			if r.dir {
				first.made.mode = unfinishedDir
			}
			n += len(first.madeLine())
		}
	}
	return n
}

// otherBoot is the journal as another boot finds it, each line in its place.
func otherBoot(journal []byte) []byte {
	var text strings.Builder
	boot := bootID()
	for l := range strings.SplitSeq(strings.TrimSuffix(string(journal), "\n"), "\n") {
		_, rest, _ := strings.Cut(l, " ")
		text.WriteString(line(strings.Replace(rest, boot, strings.Repeat("x", len(boot)), 1)))
	}
	return []byte(text.String())
}

// FS-54: the first of two processes is killed; the other's names stay until it ends.
func TestFS54_Case30_KilledProcess(t *testing.T) {
	f := newField(t)
	victim := f.command(envStep+"=0", envWait+"=1")
	in, err := victim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	if text, err := bufio.NewReader(out).ReadString('\n'); text != "held\n" {
		t.Fatalf("%q, %v", text, err)
	}
	s := f.hold(".bashrc")
	f.sweep()
	both := []string{`-r--r--r-- .bashrc ""`, "dr-xr-xr-x .vscode", `-r--r--r-- commondir ".\n"`, "dr-xr-xr-x nd"}
	f.wantTree(both...)
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	victim.Wait()
	f.wantTree(both...)
	f.sweep()
	f.wantTree(both[0])
	f.release(s)
	f.wantTree()
	f.wantForgotten()
}

// A copy of the descriptor, as pid 1 of a sandbox has one, keeps the names when srt is killed, and not after a release.
func TestFS54_CopyOfTheDescriptorKeepsTheNames(t *testing.T) {
	f := newField(t)
	s := f.hold("f")
	pid1, err := unix.FcntlInt(s.File().Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	die(s)
	f.sweep()
	f.wantTree(`-r--r--r-- f ""`)
	unix.Close(pid1)
	f.sweep()
	f.wantTree()

	s = f.hold("f")
	if pid1, err = unix.FcntlInt(s.File().Fd(), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pid1)
	second := f.hold("f")
	f.release(s)
	f.wantTree(`-r--r--r-- f ""`)
	f.release(second)
	f.wantTree()
}
