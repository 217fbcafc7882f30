//go:build unix && !linux

package main

import "golang.org/x/sys/unix"

// withoutCore makes this process write no core file.
func withoutCore() error { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }
