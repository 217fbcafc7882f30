package escape

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal gives the two ends of a new terminal.
func openTerminal(w *world) (master, slave *os.File) {
	w.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	w.must(err)
	w.t.Cleanup(func() { master.Close() })
	w.must(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	w.must(err)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	w.must(err)
	w.t.Cleanup(func() { slave.Close() })
	if w.who.other {
		w.must(slave.Chown(w.who.uid, w.who.gid))
	}
	return master, slave
}

// onTerminal makes a command the leader of a session whose terminal is its standard input.
func onTerminal(cmd *exec.Cmd, slave *os.File) {
	cmd.Stdin = slave
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, true, 0
}

// TestEscape_049_Tiocsti: CVE-2017-5226. Nothing is typed into the caller's terminal: no byte waits there afterwards.
func TestEscape_049_Tiocsti(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, slave := openTerminal(w)
		var calls []call
		for _, fd := range []int{0, 1, 2, 3} {
			for _, c := range "pwned\n" {
				calls = append(calls, call{unix.SYS_IOCTL, fd, unix.TIOCSTI, hex(string(c))}, call{unix.SYS_IOCTL, fd, unix.TIOCSTI + upper, hex(string(c))})
			}
		}
		calls = append([]call{{unix.SYS_OPENAT, at, "/dev/tty", unix.O_RDWR, 0}}, calls...)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		cmd := w.srt(ctx, append([]string{programs + "/attack"}, words(calls[:50]...)...)...)
		onTerminal(cmd, slave)
		o := w.finish(cmd)
		if len(o.out) < 6 || o.out[:6] != "INSIDE" {
			t.Fatalf("the attack was not made: %s", o.err)
		}
		if n, err := unix.IoctlGetInt(int(slave.Fd()), unix.TIOCINQ); err != nil || n != 0 {
			t.Errorf("ESCAPE: %d bytes wait to be read as if typed (%v)", n, err)
		}
	})
}

// TestEscape_049_SignalsToTheCallersJob: in a pipeline the command stays in the caller's process group, whose other
// members it must not end.
func TestEscape_049_SignalsToTheCallersJob(t *testing.T) {
	if abi, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1); abi < 6 {
		t.Skipf("Landlock has ABI %d here, and signals are scoped from 6 (Linux 6.12) on", abi)
	}
	each(t, func(t *testing.T, w *world) {
		_, slave := openTerminal(w)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		script := programs + `/srt exec -s ` + w.settingsFile() + ` -- sh -c 'echo INSIDE; kill -9 0; kill -9 -1; kill -TERM 0' > log; echo $? > status; exit 0`
		cmd := w.command(ctx, "sh", "-c", script)
		onTerminal(cmd, slave)
		o := w.finish(cmd)
		if w.read("work/log") != "INSIDE\n" {
			t.Fatalf("the attack was not made: %s", o.err)
		}
		if o.code != 0 || w.read("work/status") != "137\n" {
			t.Errorf("ESCAPE: the caller's shell ended with %d, srt with %q", o.code, w.read("work/status"))
		}
	})
}
