package broker

import (
	"encoding/binary"
	"syscall"
)

// openHow is struct open_how of openat2(2).
type openHow struct{ flags, mode, resolve uint64 }

// Sizes of struct open_how: the first published one, which is also the one known here, and the largest that the kernel
// looks at (fs/open.c).
const (
	howSize    = 24
	howSizeMax = 4096
)

// checkHowSize is the kernel's check of the size argument, before it reads anything.
func checkHowSize(size uint64) syscall.Errno {
	switch {
	case size < howSize:
		return syscall.EINVAL
	case size > howSizeMax:
		return syscall.E2BIG
	}
	return 0
}

// parseHow reads a structure of at least howSize bytes. What a newer program says behind the part known here must be
// zero, else it asks for something that would be left out (E2BIG, openat2(2)).
func parseHow(b []byte) (openHow, syscall.Errno) {
	for _, c := range b[howSize:] {
		if c != 0 {
			return openHow{}, syscall.E2BIG
		}
	}
	return openHow{binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:]), binary.NativeEndian.Uint64(b[16:])}, 0
}

// bytes is the structure as the kernel reads it.
func (h openHow) bytes() []byte {
	b := binary.NativeEndian.AppendUint64(make([]byte, 0, howSize), h.flags)
	return binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(b, h.mode), h.resolve)
}
