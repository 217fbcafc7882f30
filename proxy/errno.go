package proxy

import (
	"errors"
	"os"
	"syscall"
)

// errRefused is the class of every refusal of a captured connection by the policy.
var errRefused = errors.New("refused by the policy of the sandbox")

// errnoError is an error that a program sees as an errno. errors.As finds the errno before all others in it.
type errnoError struct {
	errno syscall.Errno
	err   error
}

func (e *errnoError) Error() string   { return e.err.Error() }
func (e *errnoError) Unwrap() []error { return []error{e.errno, e.err} }

// withErrno makes an error of a dial one that says what the program sees.
func withErrno(err error) error { return &errnoError{Errno(err), err} }

// Errno is what connect(2) answers to a program for a connection that was not made (nil: 0). It is one of six, so that
// nothing about the host beyond the network is told (its firewall):
//
//	EACCES        the policy refused it: by name, by address, or by what the name resolved to. Nothing else gives EACCES.
//	ECONNREFUSED  the destination said no at once; so did a proxy on the way, by a 4xx or by not being there; and all that
//	              has no better name: a program gives up on it without waiting or trying again.
//	EHOSTUNREACH  the network says that there is no such host, or nobody knows the name, or a proxy on the way could not
//	              reach it (5xx).
//	ENETUNREACH   no route.
//	ETIMEDOUT     nobody answered in time (504 from a proxy included).
//	EAGAIN        srt, or the host, has no descriptor, memory or port left for another connection: the program may try again
//	              (connect(2) has it for "no more free local ports", which is as much of the host's making).
func Errno(err error) syscall.Errno {
	var known *errnoError
	var resolved *ResolvedError
	var lookup lookupError
	var tunnel *tunnelRefusedError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &known):
		return known.errno
	case errors.As(err, &resolved), errors.Is(err, errRefused):
		return syscall.EACCES
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		return syscall.EAGAIN
	case errors.As(err, &tunnel):
		return proxyErrno(tunnel.status)
	case isTimeout(err), errors.Is(err, os.ErrDeadlineExceeded):
		return syscall.ETIMEDOUT
	case errors.As(err, &lookup):
		return syscall.EHOSTUNREACH
	}
	var system syscall.Errno
	if errors.As(err, &system) {
		for _, row := range dialErrnos {
			if row.is == system {
				return row.told
			}
		}
	}
	return syscall.ECONNREFUSED
}

// dialErrnos is what a program is told for errors of connect(2) on the host. A firewall of the host that forbids a packet
// (EPERM, EACCES) must not be taken for srt's policy.
var dialErrnos = [...]struct{ is, told syscall.Errno }{
	{errConnectionRefused, syscall.ECONNREFUSED},
	{errHostUnreachable, syscall.EHOSTUNREACH},
	{errNetworkUnreachable, syscall.ENETUNREACH},
	{errTimedOut, syscall.ETIMEDOUT},
	{syscall.EHOSTDOWN, syscall.EHOSTUNREACH},
	{syscall.EPERM, syscall.EHOSTUNREACH},
	{syscall.EACCES, syscall.EHOSTUNREACH},
	{syscall.ENETDOWN, syscall.ENETUNREACH},
	{syscall.EADDRNOTAVAIL, syscall.EAGAIN}, // this host has no port left to connect from
	{syscall.EINVAL, syscall.ENETUNREACH},   // an address that cannot be connected to, such as a link-local one without a zone
}

// proxyErrno is what a program is told for the answer of a parent proxy to CONNECT.
func proxyErrno(status int) syscall.Errno {
	switch {
	case status == 504: // Gateway Timeout; net/http would cost every start of srt its initialisation
		return syscall.ETIMEDOUT
	case status >= 500:
		return syscall.EHOSTUNREACH
	}
	return syscall.ECONNREFUSED
}
