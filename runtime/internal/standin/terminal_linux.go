package standin

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// giveTerminal gives up the controlling terminal if it is standard input and this process leads the session on it, as
// libraries for pseudo-terminals arrange. Only then can another session take it, which is the command's (ioctl_tty(2)). It
// tells whether it did.
//
// The kernel sends the foreground process group SIGHUP for it. This process is in it and does not mean it.
func giveTerminal() bool {
	session, err := unix.IoctlGetInt(0, unix.TIOCGSID)
	if err != nil || session != os.Getpid() {
		return false
	}
	signal.Ignore(unix.SIGHUP)
	return unix.IoctlSetInt(0, unix.TIOCNOTTY, 0) == nil
}

// inForeground tells whether this process's group has the terminal that is standard input.
func inForeground() bool {
	front, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err == nil && front == unix.Getpgrp()
}
