package rlimit

// Limit is struct rlimit (getrlimit(2)).
type Limit struct{ Cur, Max uint64 }

var (
	original Limit
	errno    uintptr
)

func init() { errno = -prlimit(&original) }

// prlimit reads RLIMIT_NOFILE of this process (prlimit(2)) and returns the kernel's answer: 0, or a negative errno.
//
//go:noescape
func prlimit(old *Limit) uintptr

// NoFile gives the limits of open files (RLIMIT_NOFILE) that the process had when it started, and whether the kernel
// told them. It is safe for concurrent use.
func NoFile() (Limit, bool) { return original, errno == 0 }
