//go:build !windows

package proxy

import "syscall"

// The errors of connect(2) that clients are told apart.
const (
	errNetworkUnreachable = syscall.ENETUNREACH
	errHostUnreachable    = syscall.EHOSTUNREACH
	errConnectionRefused  = syscall.ECONNREFUSED
	errTimedOut           = syscall.ETIMEDOUT
)
