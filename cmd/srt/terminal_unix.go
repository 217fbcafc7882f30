//go:build unix

package main

import "golang.org/x/sys/unix"

// terminalSends tells whether the terminal has already delivered sig to the command: it goes to the whole foreground
// process group, which is that of both when the command is in srt's. Passing it on as well would make one Ctrl-C two, and
// killing the sandbox after a Ctrl-\ would end a shell that ignores it.
func (a *app) terminalSends(sig forwarded, p process) bool {
	if !sig.keyboard || a.stdin == nil || !p.InCallersGroup() {
		return false
	}
	foreground, err := unix.IoctlGetInt(int(a.stdin.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}
