package proxy

import "golang.org/x/sys/windows"

// The errors of connect that clients are told apart. Package syscall's names stand for other numbers on Windows.
const (
	errNetworkUnreachable = windows.WSAENETUNREACH
	errHostUnreachable    = windows.WSAEHOSTUNREACH
	errConnectionRefused  = windows.WSAECONNREFUSED
	errTimedOut           = windows.WSAETIMEDOUT
)
