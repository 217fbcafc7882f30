//go:build unix

package proxy

import (
	"math"
	"syscall"
)

// descriptors returns how many the process may have at once (RLIMIT_NOFILE). Package os has raised the limit by then as
// far as that goes.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxUint64
	}
	return limit.Cur
}
