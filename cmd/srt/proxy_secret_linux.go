package main

import "golang.org/x/sys/unix"

// withoutCore makes this process one whose memory is not written to a core file, whatever takes those, and that no other
// process of its user may look into (PR_SET_DUMPABLE(2const); limits do not hold where core files are piped, core(5)).
func withoutCore() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
