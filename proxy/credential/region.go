package credential

import (
	"errors"
	"runtime"
)

// ErrMemory is the class of failures to get memory that values may be kept in.
var ErrMemory = errors.New("no protected memory for credentials")

const (
	chunkSize = 64 << 10 // of a mapping that values share; most sessions need one
	smallest  = 32       // capacity of a place
)

// region is the memory that the values of a session live in. It grows by further mappings; none ever moves, so a view
// stays valid until its place is released or the region destroyed. It is not safe for concurrent use.
type region struct {
	chunks [][]byte         // whole mappings
	rest   []byte           // the unused end of the newest shared one
	free   map[int][][]byte // released places, overwritten, by their capacity
}

// place copies value to a place of its own and returns that, its capacity being all that belongs to it. Capacities are
// powers of two, so that a value that grows a little keeps its place and a released one fits the next value.
func (r *region) place(value []byte) ([]byte, error) {
	size := smallest
	for size < len(value) {
		size *= 2
	}
	spot, err := r.take(size)
	if err != nil {
		return nil, err
	}
	return spot[:copy(spot, value):size], nil
}

// take returns size bytes of zeroes.
func (r *region) take(size int) ([]byte, error) {
	if list := r.free[size]; len(list) > 0 {
		last := len(list) - 1
		r.free[size] = list[:last]
		return list[last], nil
	}
	if size > chunkSize/4 {
		return r.grow(size)
	}
	if len(r.rest) < size {
		chunk, err := r.grow(chunkSize)
		if err != nil {
			return nil, err
		}
		r.rest = chunk
	}
	spot := r.rest[:size:size]
	r.rest = r.rest[size:]
	return spot, nil
}

// grow adds a mapping.
func (r *region) grow(size int) ([]byte, error) {
	chunk, err := newMapping(size)
	if err != nil {
		return nil, err
	}
	r.chunks = append(r.chunks, chunk)
	return chunk[:size:size], nil
}

// release overwrites a place and keeps it for another value.
func (r *region) release(spot []byte) {
	spot = spot[:cap(spot)]
	wipe(spot)
	if r.free == nil {
		r.free = make(map[int][][]byte)
	}
	r.free[cap(spot)] = append(r.free[cap(spot)], spot)
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
