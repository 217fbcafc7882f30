package proxy

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// ErrNoFreePort is a port range in which every port is taken or excluded (NET-6).
var ErrNoFreePort = errors.New("no free port")

// Listen listens on TCP port lo of 127.0.0.1, or the next one up to hi that is free and not excluded. lo and hi 0 mean a
// port that the system chooses. No other address is ever bound (NET-6). The error for a range without a free port matches
// [ErrNoFreePort]. The caller owns the listener. Linux needs none of this: there the listeners are in the sandbox.
func Listen(lo, hi int, exclude ...int) (net.Listener, error) {
	if lo == 0 && hi == 0 {
		return net.Listen("tcp4", "127.0.0.1:0")
	}
	for port := lo; port <= hi; port++ {
		if slices.Contains(exclude, port) {
			continue
		}
		if l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l, nil
		}
	}
	return nil, &portRangeError{lo, hi, exclude}
}

// portRangeError has the text of NET-6.
type portRangeError struct {
	lo, hi  int
	exclude []int
}

func (e *portRangeError) Error() string {
	s := fmt.Sprintf("No free port in range %d-%d", e.lo, e.hi)
	if len(e.exclude) > 0 {
		s += " (excluding " + strings.Trim(strings.ReplaceAll(fmt.Sprint(e.exclude), " ", ", "), "[]") + ")"
	}
	return s
}

func (e *portRangeError) Unwrap() error { return ErrNoFreePort }
