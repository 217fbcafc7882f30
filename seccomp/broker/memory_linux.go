package broker

import (
	"bytes"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// What a caller's arguments point to is read here, once: what has been read is what is judged and what is performed.
// Another thread of the caller can change it meanwhile; that has the same effect as changing it before the call.

// errMemory says that the memory of a live caller cannot be read, which the kernel can do natively: the call is refused.
var errMemory = errors.New("the memory of the caller cannot be read")

// pageSize is the smallest page of any architecture here; larger ones are whole multiples.
const pageSize = 4096

// readMemory fills dst from the caller's memory at address. It gives how much could be read: less than all ends at a page
// that is not there.
func (c *call) readMemory(dst []byte, address uint64) (int, error) {
	n := 0
	for n < len(dst) {
		// One page at a time: a transfer never splits an element at a page that is missing (process_vm_readv(2)).
		part := min(len(dst)-n, pageSize-int((address+uint64(n))%pageSize))
		local := [1]unix.Iovec{{Base: &dst[n]}}
		local[0].SetLen(part)
		remote := [1]unix.RemoteIovec{{Base: uintptr(address) + uintptr(n), Len: part}}
		got, err := unix.ProcessVMReadv(c.tid, local[:], remote[:], 0)
		switch {
		case errors.Is(err, unix.EFAULT):
			return n, nil
		case err != nil:
			return n, errors.Join(errMemory, err)
		case got == 0:
			return n, nil
		}
		n += got
		if got < part {
			return n, nil
		}
	}
	return n, nil
}

// bytesAt reads a structure of known size: all of it, or EFAULT.
func (c *call) bytesAt(address uint64, size int) ([]byte, syscall.Errno) {
	b := make([]byte, size)
	n, err := c.readMemory(b, address)
	switch {
	case err != nil:
		return nil, c.broken(err)
	case n < size:
		return nil, unix.EFAULT
	}
	return b, 0
}

// firstRead is how much of a path is read at first: most are shorter.
const firstRead = 256

// pathAt reads a path as the kernel does: EFAULT where its memory ends before its NUL byte, ENAMETOOLONG without one in
// PATH_MAX bytes.
func (c *call) pathAt(address uint64) (string, syscall.Errno) {
	buf := c.w.path[:]
	have := 0
	for have < len(buf) {
		want := len(buf)
		if have == 0 {
			want = firstRead
		}
		n, err := c.readMemory(buf[have:want], address+uint64(have))
		if err != nil {
			return "", c.broken(err)
		}
		if end := bytes.IndexByte(buf[have:have+n], 0); end >= 0 {
			return string(buf[:have+end]), 0
		}
		have += n
		if have < want {
			return "", unix.EFAULT
		}
	}
	return "", unix.ENAMETOOLONG
}
