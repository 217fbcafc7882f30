package runtime

import (
	"os"
	goruntime "runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// chooseSession gives the command its place on the terminal (design section 5). With a terminal as standard input and
// output it is a foreground process group of its own, so that shells have job control; in a pipeline it stays in the
// caller's group, so that the pipeline's other ends are not stopped for using the terminal.
func chooseSession(stdin, stdout *os.File) ns.Session {
	front, err := unix.IoctlGetInt(int(stdin.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return ns.SessionNew // no terminal, or not this session's
	}
	if _, err := unix.IoctlGetTermios(int(stdout.Fd()), unix.TCGETS); err != nil || front != unix.Getpgrp() {
		return ns.SessionShared
	}
	return ns.SessionForeground
}

// settleDelay is longer than the kernel takes to stop a process group that was sent a stop signal.
const settleDelay = 20 * time.Millisecond

// stopWithCommand is the host side's part of job control: the command's group has stopped, so the caller's group takes
// the terminal back and stops too, as a shell expects of a job. It returns when the job is continued, and tells whether
// that was in the foreground. Where nobody can continue this group the stop signal is ignored by the kernel (an
// orphaned process group), and the command goes on at once.
func stopWithCommand(tty *os.File) bool {
	takeTerminal(tty)
	unix.Kill(0, unix.SIGTSTP)
	time.Sleep(settleDelay)
	front, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && front == unix.Getpgrp()
}

// returnTerminal puts the caller's group in the foreground again after the command has ended, unless another job has
// the terminal by now.
func returnTerminal(tty *os.File) {
	front, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	if err != nil || front == unix.Getpgrp() {
		return
	}
	if front > 0 && unix.Kill(-front, 0) != unix.ESRCH {
		return
	}
	takeTerminal(tty)
}

// takeTerminal makes the caller's process group the foreground one. SIGTTOU, which a background group gets for that, is
// blocked for the one thread meanwhile (tcsetpgrp(3)); no handler of the process is touched.
func takeTerminal(tty *os.File) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	var set, old unix.Sigset_t
	set.Val[0] = 1 << (uint(unix.SIGTTOU) - 1)
	if unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old) != nil {
		return
	}
	unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
	unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
}
