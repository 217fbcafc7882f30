package credential

import (
	"errors"
	"fmt"
	"runtime"
)

// ErrMemory is the class of failures to get memory that values may be kept in.
var ErrMemory = errors.New("no protected memory for credentials")

const (
	chunkSize = 64 << 10 // of a mapping that values share; most sessions need one
	grain     = 32       // capacities are multiples of it, so that a value that grows a little keeps its place
)

// region is the memory that the values of a session live in. It grows by further mappings; none ever moves, so a view
// stays valid until its place is released or the region destroyed. It is not safe for concurrent use.
type region struct {
	chunks [][]byte // whole mappings
	rest   []byte   // the unused end of the newest shared one
	free   [][]byte // released places, overwritten; len is their capacity
}

// place copies value to a place of its own and returns that, its capacity being all that belongs to it.
func (r *region) place(value []byte) ([]byte, error) {
	size := max((len(value)+grain-1)/grain*grain, grain)
	spot, err := r.take(size)
	if err != nil {
		return nil, err
	}
	return spot[:copy(spot, value):size], nil
}

// take returns size unused bytes, size being a multiple of grain.
func (r *region) take(size int) ([]byte, error) {
	for i, spot := range r.free {
		// A much larger place would be lost to a small value.
		if len(spot) >= size && len(spot) <= 2*size {
			last := len(r.free) - 1
			r.free[i] = r.free[last]
			r.free = r.free[:last]
			return spot, nil
		}
	}
	if size > chunkSize/4 {
		chunk, err := newMapping(size)
		if err != nil {
			return nil, err
		}
		r.chunks = append(r.chunks, chunk)
		return chunk[:size:size], nil
	}
	if len(r.rest) < size {
		chunk, err := newMapping(chunkSize)
		if err != nil {
			return nil, err
		}
		r.chunks = append(r.chunks, chunk)
		r.rest = chunk
	}
	spot := r.rest[:size:size]
	r.rest = r.rest[size:]
	return spot, nil
}

// release overwrites a place and keeps it for another value.
func (r *region) release(spot []byte) {
	spot = spot[:cap(spot)]
	wipe(spot)
	r.free = append(r.free, spot)
}

// destroy overwrites and gives back everything. Every view is invalid from here on.
func (r *region) destroy() error {
	var failed error
	for _, chunk := range r.chunks {
		wipe(chunk)
		failed = errors.Join(failed, freeMapping(chunk))
	}
	*r = region{}
	return failed
}

// scratch is protected memory for one piece of work.
type scratch struct{ mapping []byte }

// newScratch returns size bytes of zeroes. release gives them back.
func newScratch(size int) (scratch, error) {
	mapping, err := newMapping(max(size, 1))
	return scratch{mapping}, err
}

// release overwrites and gives back the memory. It may be called twice.
func (s *scratch) release() {
	if s.mapping == nil {
		return
	}
	wipe(s.mapping)
	// Nothing is left in it. That a mapping of ours cannot be unmapped leaks address space and tells nobody anything.
	_ = freeMapping(s.mapping)
	s.mapping = nil
}

// wipe overwrites b. KeepAlive holds the stores to memory that nothing reads afterwards.
func wipe(b []byte) {
	clear(b)
	runtime.KeepAlive(b)
}

// wipeRunes overwrites r.
func wipeRunes(r []rune) {
	clear(r)
	runtime.KeepAlive(r)
}

// memoryError says which step failed.
func memoryError(step string, err error) error {
	return fmt.Errorf("%w (%s: %w); free some memory, or raise the limit on address space (ulimit -v)", ErrMemory, step, err)
}
