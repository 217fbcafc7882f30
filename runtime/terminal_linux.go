package runtime

import (
	"os"
	goruntime "runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
)

// chooseSession gives the command its place on the terminal (docs/architecture.md). With a terminal as standard input and
// output it is a foreground process group of its own, so that shells have job control; in a pipeline it stays in the
// caller's group, so that the pipeline's other ends are not stopped for using the terminal.
//
// Signals to a process group reach every member, in whatever pid namespace it is. So sharing the caller's group takes a
// kernel whose Landlock keeps signals within the sandbox; on others a pipeline's command gets a session of its own.
func chooseSession(stdin, stdout *os.File, landlockABI int) ns.Session {
	front, err := unix.IoctlGetInt(int(stdin.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return ns.SessionNew // no terminal, or not this session's
	}
	if _, err := unix.IoctlGetTermios(int(stdout.Fd()), unix.TCGETS); err != nil || front != unix.Getpgrp() {
		if landlockABI < fsview.ScopeABI {
			return ns.SessionNew
		}
		return ns.SessionShared
	}
	return ns.SessionForeground
}

// stopWithCommand is the host side's part of job control: the command's group has stopped, so the caller's group takes
// the terminal back and stops too, as a shell expects of a job. It returns when the job is continued, and tells whether
// that was in the foreground. Where nobody can continue this group the stop signal is ignored by the kernel (an
// orphaned process group), and the command goes on at once.
func stopWithCommand(tty *os.File) bool {
	takeTerminal(tty)
	stopGroup()
	front, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && front == unix.Getpgrp()
}

// stopGroup stops the caller's process group and returns when it runs again. A signal to the group may be taken by any
// thread of this process, at some later time; one that this thread sends to itself is taken before it goes on. So it
// sends itself one too, blocked until the group has its own. What arrives second does not stop the process again: the
// kernel drops pending stop signals when SIGCONT comes (signal(7)).
func stopGroup() {
	withBlocked(unix.SIGTSTP, func() {
		// The receivers exist and are this user's own.
		_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGTSTP)
		_ = unix.Kill(0, unix.SIGTSTP)
	})
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
// blocked meanwhile (tcsetpgrp(3)).
func takeTerminal(tty *os.File) {
	withBlocked(unix.SIGTTOU, func() {
		// A terminal that has hung up has no foreground to take.
		_ = unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
	})
}

// withBlocked calls f on a thread that does not take a signal meanwhile; no handler of the process is touched. A signal
// that this thread was sent is taken before withBlocked returns.
func withBlocked(sig syscall.Signal, f func()) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	var set, old unix.Sigset_t
	set.Val[0] = 1 << (uint(sig) - 1)
	if unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old) != nil {
		return
	}
	f()
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) // fails for an invalid argument only
}
