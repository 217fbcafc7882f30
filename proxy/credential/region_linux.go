package credential

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// newMapping returns zeroed anonymous memory of at least size bytes that a forked child does not inherit and a core file
// does not hold. len of the result is size, its capacity the whole mapping.
func newMapping(size int) ([]byte, error) {
	page := unix.Getpagesize()
	mapping, err := unix.Mmap(-1, 0, (size+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, memoryError("mmap", err)
	}
	for _, advice := range []struct {
		step  string
		value int
	}{
		{"madvise MADV_DONTFORK", unix.MADV_DONTFORK},
		{"madvise MADV_DONTDUMP", unix.MADV_DONTDUMP},
	} {
		if err := unix.Madvise(mapping, advice.value); err != nil {
			return nil, errors.Join(memoryError(advice.step, err), unix.Munmap(mapping))
		}
	}
	// Keeps values out of swap. The limit (RLIMIT_MEMLOCK) may be 0 in a container, where a failure must not stop every
	// command: swap is readable for the administrator of the host alone, who can read srt's memory as well.
	_ = unix.Mlock(mapping)
	return mapping[:size], nil
}

// freeMapping unmaps what newMapping returned.
func freeMapping(mapping []byte) error { return unix.Munmap(mapping[:cap(mapping)]) }

// memoryError says which step failed.
func memoryError(step string, err error) error {
	return fmt.Errorf("%w (%s: %w); free some memory, or raise the limit on address space (ulimit -v)", ErrMemory, step, err)
}
