//go:build !linux

package local

import (
	"net"
	"syscall"
)

// Listener does nothing on this system.
func Listener(net.Listener) {}

// Control does nothing on this system.
func Control(_, _ string, _ syscall.RawConn) error { return nil }
