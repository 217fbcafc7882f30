package ns

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns/internal/rlimit"
)

// cores is what is known of the limit of core files.
var cores struct {
	mu       sync.RWMutex // held for reading while a process is made, so that it is known which limit it has inherited
	limited  bool
	original rlimit.Limit
}

// noCore is the soft limit under which the kernel writes no core file and feeds no program with one either: with a program in
// core_pattern it takes 0 for no limit at all, and refuses 1 alone (core(5), do_coredump in fs/coredump.c).
const noCore = 1

// LimitCores keeps this process from dumping core, until it ends: a core file has all that a process knows. The commands that
// are started from then on have the limit that was in force before (RLIMIT_CORE, getrlimit(2)); what else this process starts
// inherits its own. It may be called at any time, from any goroutine, and again.
func LimitCores() error {
	cores.mu.Lock()
	defer cores.mu.Unlock()
	if cores.limited {
		return nil
	}
	var old unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &old); err != nil {
		return fmt.Errorf("read the limit of core files, so that this process dumps none: %w", err)
	}
	now := unix.Rlimit{Cur: min(noCore, old.Max), Max: old.Max} // a hard limit of 0 is all that can be had
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, &now, nil); err != nil {
		return fmt.Errorf("lower the limit of core files, so that this process dumps none: %w", err)
	}
	cores.limited, cores.original = true, rlimit.Limit{Cur: old.Cur, Max: old.Max}
	return nil
}
