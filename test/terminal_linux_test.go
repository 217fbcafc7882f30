package test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal with a program on it, driven as a person at the keyboard would.
type terminal struct {
	b    *box
	cmd  *exec.Cmd
	ptmx *os.File
	mu   sync.Mutex
	seen strings.Builder // everything that came, carriage returns removed
	read int             // how much of it expect has passed
}

// onTerminal starts a program of the host as the leader of a session with a terminal of its own (pty(7)).
func (b *box) onTerminal(args ...string) *terminal {
	b.t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	b.must(err)
	b.t.Cleanup(func() { ptmx.Close() })
	fd := int(ptmx.Fd())
	b.must(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	b.must(err)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	b.must(err)
	defer tty.Close()
	b.must(tty.Chown(b.who.uid, b.who.gid))
	cmd := b.command(args...)
	cmd.Env = append(b.env, "PS1=ready$ ", "INPUTRC=/dev/null", "HISTFILE=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	b.must(cmd.Start())
	term := &terminal{b: b, cmd: cmd, ptmx: ptmx}
	go term.pump()
	return term
}

// pump collects the output until the last program has closed the terminal.
func (t *terminal) pump() {
	buf := make([]byte, 4096)
	for {
		n, err := t.ptmx.Read(buf)
		t.mu.Lock()
		t.seen.WriteString(strings.ReplaceAll(string(buf[:n]), "\r", ""))
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// send types text. "^C" and its like are control characters.
func (t *terminal) send(text string) {
	t.b.t.Helper()
	for _, key := range []struct{ from, to string }{{"^C", "\x03"}, {"^Z", "\x1a"}, {"^D", "\x04"}, {"^\\", "\x1c"}} {
		text = strings.ReplaceAll(text, key.from, key.to)
	}
	_, err := t.ptmx.WriteString(text)
	t.b.must(err)
}

// expect waits for text after what earlier calls have found.
func (t *terminal) expect(text string) {
	t.b.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		t.mu.Lock()
		all := t.seen.String()
		if at := strings.Index(all[t.read:], text); at >= 0 {
			t.read += at + len(text)
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b.t.Fatalf("the terminal never shows %q after %q", text, t.seen.String())
}

// do types a line and waits for an answer that the line itself does not contain.
func (t *terminal) do(line, answer string) {
	t.b.t.Helper()
	t.send(line + "\n")
	t.expect(answer)
}

// exits waits for the program's end.
func (t *terminal) exits(want int) {
	t.b.t.Helper()
	_ = t.cmd.Wait()
	if got := exitStatus(t.cmd.ProcessState); got != want {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.b.t.Errorf("status %d, want %d; the terminal shows %q", got, want, t.seen.String())
	}
}

const plainBash = "--norc --noprofile --noediting -i"

func (b *box) bash() []string {
	return append([]string{"bash"}, strings.Fields(plainBash)...)
}

func TestTerminal_InteractiveShell(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		term := b.onTerminal(b.srt(cfg{aw: list{"."}}, b.bash()...)...)
		term.expect("ready$ ")
		term.do("echo $((40+2))", "42\n")
		term.do("[ -t 0 ] && [ -t 1 ] && echo x >/dev/tty && echo is$((1)) a terminal", "is1 a terminal")
		// Job control.
		term.send("sleep 60\n")
		b.runs("sleep")
		term.send("^Z")
		term.expect("Stopped")
		term.do("jobs", "[1]+")
		term.expect("Stopped")
		term.send("fg\n")
		term.expect("sleep 60\n")
		b.resumed("sleep")
		term.send("^C")
		term.expect("ready$ ")
		term.do("echo status $?", "status 130")
		term.do("sleep 60 & kill %1; wait %1; echo bg $?", "bg 143")
		term.send("exit 7\n")
		term.exits(7)
		b.deserted()
	})
}

// runs waits until a program of that name runs in a sandbox of this box.
func (b *box) runs(name string) {
	b.t.Helper()
	eventually(b.t, func() string {
		for _, p := range b.processes() {
			if strings.HasSuffix(p, " ("+name+")") {
				return ""
			}
		}
		return name + " does not run"
	})
}

// resumed waits until the program of that name is not stopped any more.
func (b *box) resumed(name string) {
	b.t.Helper()
	eventually(b.t, func() string {
		for _, p := range b.processes() {
			pid, found := strings.CutSuffix(p, " ("+name+")")
			stat, err := os.ReadFile("/proc/" + pid + "/stat")
			if found && err == nil && !strings.Contains(string(stat), ") T ") {
				return ""
			}
		}
		return name + " is stopped"
	})
}

func TestTerminal_HandedBackToTheOuterShell(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		srt := strings.Join(b.srt(cfg{aw: list{"."}}), " ")
		term := b.onTerminal(b.bash()...)
		term.expect("ready$ ")
		term.do(srt+" sh -c 'exit 9'; echo status $?", "status 9")
		// The outer shell goes on: it reads, and its own jobs have the terminal.
		term.do("read x; echo got:$x", "")
		term.do("word", "got:word")
		// A sandboxed job is stopped and continued as any other.
		term.send(srt + " sleep 60\n")
		b.runs("sleep")
		term.send("^Z")
		term.expect("Stopped")
		term.do("jobs; echo still$((1)) here", "still1 here")
		term.send("fg\n")
		b.resumed("sleep")
		term.send("^C")
		term.do("echo status $?", "status 130")
		term.do("stty -a | grep -c ' icanon'; cat", "1\n")
		term.send("^D")
		term.do("echo end$((1))", "end1")
		// After a kill of srt, too.
		term.send(srt + " sh -c 'touch started; exec sleep 60'\n")
		b.appears("started")
		term.b.host("sh", "-c", `for p in /proc/[0-9]*; do [ "$(readlink $p/exe)" = "$SRT_BIN" ] && grep -qzs "`+b.mark+`" $p/environ && kill -9 ${p#/proc/}; done; true`)
		term.expect("Killed")
		term.do("read x; echo got:$x", "")
		term.do("again", "got:again")
		term.send("exit 3\n")
		term.exits(3)
		b.deserted()
	})
}

func TestTerminal_WindowSizeAndRawMode(t *testing.T) {
	need(t, "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		term := b.onTerminal(b.srt(cfg{}, b.bash()...)...)
		term.expect("ready$ ")
		term.do("trap 'echo resized $(stty size)' WINCH; echo set$((1))", "set1")
		b.must(unix.IoctlSetWinsize(int(term.ptmx.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 101}))
		term.do("", "resized 33 101")
		term.send(`python3 -c '
import os, termios, tty
old = termios.tcgetattr(0); tty.setraw(0)
os.write(1, b"raw" + b"on"); key = os.read(0, 1)
termios.tcsetattr(0, termios.TCSANOW, old); print("key", key)'` + "\n")
		term.expect("rawon")
		term.send("^C") // an ordinary byte now
		term.expect(`key b'\x03'`)
		term.do("stty -echo; stty echo; exit", "")
		term.exits(0)
	})
}

func TestTerminal_KeyboardInjectionRefused(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		term := b.onTerminal(b.srt(cfg{}, probePath, "tiocsti", ";", "tioclinux", ";", "tiocsetd")...)
		term.expect("EPERM\nEPERM\nEPERM\n")
		term.exits(0)
	})
}

func TestTerminal_PipelineStaysInTheCallersGroup(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		srt := strings.Join(b.srt(cfg{}), " ")
		term := b.onTerminal(b.bash()...)
		term.expect("ready$ ")
		term.do("seq 5 | "+srt+" sort -r | tr '\\n' -; echo", "5-4-3-2-1-")
		term.send(srt + " sleep 60 | cat\n")
		b.runs("sleep")
		term.send("^C")
		term.do("echo after$((1))", "after1")
		b.idle("sleep")
		term.send(srt + " sleep 60 &\n")
		b.runs("sleep") // a signal before that would end the set-up (CLI-14)
		term.do("kill %1; wait %1; echo bg $?", "bg 143")
		term.send("exit\n")
		term.exits(0)
	})
}

// idle waits until no program of that name runs in this box.
func (b *box) idle(name string) {
	b.t.Helper()
	eventually(b.t, func() string {
		for _, p := range b.processes() {
			if strings.HasSuffix(p, " ("+name+")") {
				return p
			}
		}
		return ""
	})
}

// TestTerminal_Name: the terminal is there by its descriptors and as /dev/tty, under no other name, and a terminal of the
// sandbox's own has one (FS-47).
func TestTerminal_Name(t *testing.T) {
	need(t, "script")
	each(t, func(t *testing.T, b *box) {
		term := b.onTerminal(b.srt(cfg{}, "sh", "-c", "tty; ls /dev/pts; test -t 0 && echo by descriptor; tty </dev/tty; (: >/proc/self/fd/0) 2>/dev/null && echo anew; "+
			"script -qc tty /dev/null; echo done")...)
		term.expect("not a tty\nptmx\nby descriptor\n/dev/tty\n/dev/pts/0\ndone\n")
		term.exits(0)
	})
}
