package ns

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lingering are scripts that start processes in every state in which one might be missed, say "up" once these are there, and
// read a line. All their processes have standard output open.
var lingering = []struct{ name, script string }{
	{"child", `sleep 300 & echo up; read x`},
	{"ignores signals", `(trap '' TERM INT HUP; sleep 300) & echo up; read x`},
	{"own sessions", `setsid sleep 300 & setsid setsid sleep 300 & echo up; read x`},
	{"daemons", `for i in 1 2 3; do (setsid sh -c 'sleep 300 & exit' &); done; sleep 0.1; echo up; read x`},
	{"stopped", `sh -c 'kill -STOP $$' & while ! grep -q 'State:.T' /proc/$!/status; do :; done; echo up; read x`},
	{"stopped itself", `(sleep 0.1; echo up) & kill -STOP $$`},
	{"adopts orphans", python(`
		libc.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
		if os.fork() == 0:
			if os.fork(): os._exit(0)
			time.sleep(300)
		os.wait(); print("up", flush=True); sys.stdin.readline()`)},
	{"a chain of those that adopt", python(`
		for i in range(20):
			libc.prctl(36, 1)
			if os.fork(): time.sleep(300)
		print("up", flush=True); time.sleep(300)`)},
	{"traced", python(`
		pid = os.fork()
		if pid == 0:
			libc.ptrace(0, 0, 0, 0)  # PTRACE_TRACEME
			os.kill(os.getpid(), 19); time.sleep(300)
		os.waitpid(pid, os.WUNTRACED)
		libc.ptrace(0x4200, pid, 0, 0x40)  # PTRACE_SETOPTIONS, PTRACE_O_TRACEEXIT: it stops once more when it is killed
		print("up", flush=True); sys.stdin.readline()`)},
	{"traced by somebody's orphan", python(`
		if os.fork() == 0:
			os.setsid()
			pid = os.fork()
			if pid == 0:
				libc.ptrace(0, 0, 0, 0); os.kill(os.getpid(), 19); time.sleep(300)
			os.waitpid(pid, os.WUNTRACED); print("up", flush=True); time.sleep(300)
		sys.stdin.readline()`)},
	{"in vfork", python(`
		if os.fork(): sys.stdin.readline(); os._exit(0)
		if libc.vfork() == 0:
			libc.write(1, b"up\n", 3); libc.sleep(300)`)},
	{"many threads", python(`
		import threading
		for i in range(20): threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
		print("up", flush=True); sys.stdin.readline()`)},
	{"children of the supervisor", python(`
		# clone(CLONE_PARENT): siblings of the command
		for i in range(3):
			if libc.syscall(56 if os.uname().machine == "x86_64" else 220, 0x8000, 0, 0, 0, 0) == 0: time.sleep(300)
		print("up", flush=True); sys.stdin.readline()`)},
	// Each process forks and ends at once: whoever is looked up by number is gone by then.
	{"forks without end", python(`
		for i in range(8):
			if os.fork() == 0:
				while True:
					try:
						if os.fork(): os._exit(0)
					except BlockingIOError: pass
		time.sleep(0.2); print("up", flush=True); sys.stdin.readline()`)},
	{"multiplies up to 512", python(`
		if os.fork() == 0:
			for i in range(9): os.fork()
			time.sleep(300)
		print("up", flush=True); sys.stdin.readline()`)},
}

// python makes a script of a text that is indented by tabs.
func python(text string) string {
	text = strings.ReplaceAll(text, "\n\t\t", "\n")
	return "exec /usr/bin/python3 -c '\nimport ctypes, os, sys, time\nlibc = ctypes.CDLL(None)" + text + "'"
}

// lingers starts a script of that kind and waits for its "up".
func lingers(t *testing.T, script string) (p *Process, stdin, out *os.File) {
	t.Helper()
	in, stdin := heldPipe(t)
	out, w := heldPipe(t)
	l := confined(t, "/bin/sh", "-c", script)
	l.Stdin, l.Stdout, l.Stderr = in, w, w
	p, err := l.start()
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	awaitUp(t, out)
	return p, stdin, out
}

func awaitUp(t *testing.T, out *os.File) {
	t.Helper()
	out.SetReadDeadline(time.Now().Add(60 * time.Second))
	up := make([]byte, 3)
	if n, err := io.ReadFull(out, up); err != nil || string(up) != "up\n" {
		rest, _ := io.ReadAll(out)
		t.Fatalf("%q, %v", string(up[:n])+string(rest), err)
	}
}

// endings are the ways in which a sandbox can end, and what Wait then says.
var endings = []struct {
	name   string
	end    func(*testing.T, *Process, *os.File)
	killed bool
}{
	{"command ends", func(t *testing.T, p *Process, stdin *os.File) {
		stdin.Close()
		if err := p.Signal(unix.SIGKILL); !errors.Is(err, os.ErrProcessDone) { // for those that do not read
			check(t, err)
		}
	}, false},
	{"killed", func(t *testing.T, p *Process, _ *os.File) { check(t, p.Kill()) }, true},
	{"keeper killed", func(t *testing.T, p *Process, _ *os.File) { check(t, unix.Kill(p.pid, unix.SIGKILL)) }, true},
	{"supervisor killed", func(t *testing.T, p *Process, _ *os.File) { check(t, unix.Kill(p.Pid(), unix.SIGKILL)) }, true},
	{"killed while both are stopped", func(t *testing.T, p *Process, _ *os.File) {
		check(t, unix.Kill(p.pid, unix.SIGSTOP))
		check(t, unix.Kill(p.Pid(), unix.SIGSTOP))
		check(t, p.Kill())
	}, true},
	{"keeper killed while the supervisor is stopped", func(t *testing.T, p *Process, _ *os.File) {
		check(t, unix.Kill(p.pid, unix.SIGSTOP))
		check(t, unix.Kill(p.Pid(), unix.SIGSTOP))
		check(t, unix.Kill(p.pid, unix.SIGKILL))
	}, true},
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// TestConfined_LeavesNothing: whatever ends a sandbox, and whatever its processes are at, none is left once Wait has returned
// (CLI-17, CLI-18). The pipe that all of them hold comes to its end with the last one.
func TestConfined_LeavesNothing_CLI18(t *testing.T) {
	needScopes(t)
	for _, l := range lingering {
		for _, e := range endings {
			t.Run(l.name+"/"+e.name, func(t *testing.T) {
				p, stdin, out := lingers(t, l.script)
				e.end(t, p, stdin)
				st, err := p.Wait()
				if killed, ok := errors.AsType[*KilledError](err); ok != e.killed || ok && killed.Signal != unix.SIGKILL || !ok && err != nil {
					t.Errorf("%v, %v", st, err)
				}
				if !atEnd(t, out) {
					t.Error("processes of the sandbox are left")
				}
				if err := p.Kill(); !errors.Is(err, os.ErrProcessDone) {
					t.Errorf("Kill after the end: %v", err)
				}
			})
		}
	}
}

// TestConfined_NothingOutlivesTheHost_CLI17 kills the host process with SIGKILL.
func TestConfined_NothingOutlivesTheHost_CLI17(t *testing.T) {
	needScopes(t)
	for _, l := range lingering {
		t.Run(l.name, func(t *testing.T) {
			out, outw := heldPipe(t)
			held, heldw := heldPipe(t)
			in, _ := heldPipe(t)
			host := exec.Command("/proc/self/exe", "hold-confined", l.script, "1")
			host.Env = append(os.Environ(), "SRT_TEST_DIR="+confinedDir(t))
			host.Stdin, host.Stdout, host.Stderr, host.ExtraFiles = in, outw, outw, []*os.File{heldw}
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			outw.Close()
			heldw.Close()
			awaitUp(t, out)
			host.Process.Kill()
			host.Wait()
			outlasts(t, held, out)
		})
	}
}

// TestConfined_AnotherUser_CLI18: what root's command becomes another user is ended as well.
func TestConfined_AnotherUser_CLI18(t *testing.T) {
	needScopes(t)
	rootOnly(t)
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			p, stdin, out := lingers(t, python(`
		if os.fork() == 0:
			os.setgroups([]); os.setgid(61186); os.setuid(61186)
			print("up", flush=True); time.sleep(300)
		sys.stdin.readline()`))
			e.end(t, p, stdin)
			p.Wait()
			if !atEnd(t, out) {
				t.Error("a process of another user is left")
			}
		})
	}
}

// TestConfined_GoesOn: who stops the supervisor does not stop the sandbox from ending.
func TestConfined_GoesOn(t *testing.T) {
	needScopes(t)
	p, stdin, _ := lingers(t, "echo up; read x; exit 5")
	check(t, unix.Kill(p.Pid(), unix.SIGSTOP))
	stdin.Close()
	if st, err := p.Wait(); err != nil || st.Code != 5 {
		t.Errorf("%v, %v", st, err)
	}
}

// TestConfined_SignalAndStop: signals go to the command's group, and a stop is reported and answered as with namespaces.
func TestConfined_SignalAndStop(t *testing.T) {
	needScopes(t)
	// Without processes of its own: a shell that waits for one in vfork(2) when the signal comes does not stop.
	p, _, _ := lingers(t, `trap 'exit 9' TERM; echo up; while :; do :; done`)
	p.tty = true
	stops := 0
	p.OnStop = func(s Signal) bool {
		stops++
		check(t, p.Signal(unix.SIGTERM))
		return false
	}
	check(t, p.Signal(unix.SIGSTOP))
	if st, err := p.Wait(); err != nil || st.Code != 9 || stops != 1 {
		t.Errorf("%v, %v, stopped %d times", st, err, stops)
	}
}

// TestConfined_KillReachesNobodyElse: two sandboxes and a bystander of the same user; the end of one is felt by it alone.
func TestConfined_KillReachesNobodyElse(t *testing.T) {
	needScopes(t)
	bystander := exec.Command("/bin/sleep", "300")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	other, _, out := lingers(t, lingering[0].script)
	for range 20 {
		p, _, _ := lingers(t, lingering[0].script)
		check(t, p.Kill())
		p.Wait()
	}
	for who, pid := range map[string]int{"the bystander": bystander.Process.Pid, "the other supervisor": other.Pid(), "the other keeper": other.pid} {
		if state := statusFields(t, pid)["State"]; strings.HasPrefix(state, "Z") {
			t.Errorf("%s was killed", who)
		}
	}
	if atEnd(t, out) {
		t.Error("the other sandbox has ended")
	}
	check(t, other.Kill())
	other.Wait()
	bystander.Process.Kill()
	bystander.Wait()
}

// TestConfined_PreparedAndNotStarted: at every stage before the command a start can be given up.
func TestConfined_PreparedAndNotStarted(t *testing.T) {
	needScopes(t)
	l := confined(t, "/bin/true")
	_, w := l.output(t)
	defer w.Close()
	p, err := Prepare(&l.Config, l.program)
	if err != nil {
		t.Fatal(err)
	}
	check(t, p.Close())
	if err := unix.Kill(p.process.pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
	l = confined(t, "/bin/true")
	l.program.Call("fail", "here", unix.SYS_CLOSE, Int(-1))
	if _, _, err := run(t, l); err == nil || !strings.Contains(err.Error(), "fail here") {
		t.Errorf("%v", err)
	}
}

// TestConfined_AtOnce starts and ends many side by side.
func TestConfined_AtOnce(t *testing.T) {
	needScopes(t)
	errs := make(chan error)
	const n = 20
	for i := range n {
		go func() {
			_, st, err := run(t, confined(t, "/bin/sh", "-c", fmt.Sprintf("sleep 300 & exit %d", i)))
			if err == nil && st.Code != i {
				err = fmt.Errorf("status %d, want %d", st.Code, i)
			}
			errs <- err
		}()
	}
	for range n {
		check(t, <-errs)
	}
}
