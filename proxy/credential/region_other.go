//go:build !linux

package credential

// newMapping returns zeroed memory of size bytes. Where srt makes no child by fork, heap memory that is overwritten
// before it is dropped serves.
func newMapping(size int) ([]byte, error) { return make([]byte, size), nil }

// freeMapping leaves the memory to the runtime.
func freeMapping([]byte) error { return nil }
