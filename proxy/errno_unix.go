//go:build !windows

package proxy

import "syscall"

// The errors of connect(2) that SOCKS tells apart.
const (
	errNetworkUnreachable = syscall.ENETUNREACH
	errHostUnreachable    = syscall.EHOSTUNREACH
	errConnectionRefused  = syscall.ECONNREFUSED
)
