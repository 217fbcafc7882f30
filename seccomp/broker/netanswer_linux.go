package broker

import (
	"encoding/binary"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Some answers are more than a number, and go to the caller's memory. It is reached by way of the thread's directory in
// /proc: a number could mean another process by the time that something is written.

func nativeBytes(v int32) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(v)) }

// sizeAt reads how much room the caller has.
func (c *call) sizeAt(at uint64) (int32, syscall.Errno) {
	b, errno := c.bytesAt(at, 4)
	if errno != 0 {
		return 0, errno
	}
	size := int32(binary.NativeEndian.Uint32(b))
	if size < 0 {
		return 0, unix.EINVAL
	}
	return size, 0
}

// writeAddress answers with an address, as move_addr_to_user of net/socket.c does.
func (c *call) writeAddress(address []byte, at, sizeAt uint64) syscall.Errno {
	size, errno := c.sizeAt(sizeAt)
	if errno != 0 {
		return errno
	}
	return c.writeSized(address, size, at, sizeAt, true)
}

// writeSized writes as much of a value as the caller has room for, and then its size: the whole one, or what was written.
func (c *call) writeSized(value []byte, size int32, at, sizeAt uint64, whole bool) syscall.Errno {
	n := min(int(size), len(value))
	told := n
	if whole {
		told = len(value)
	}
	memory := -1
	err := c.onThread(func(t *thread) (err error) {
		memory, err = unix.Openat(t.dir, "mem", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return c.broken(errors.Join(errWrite, err))
	}
	defer unix.Close(memory)
	if !c.waits() {
		return unix.EINTR // it may be another process's
	}
	for _, part := range [...]struct {
		at   uint64
		what []byte
	}{{at, value[:n]}, {sizeAt, nativeBytes(int32(told))}} {
		if len(part.what) == 0 {
			continue
		}
		if written, err := unix.Pwrite(memory, part.what, int64(part.at)); err != nil || written < len(part.what) {
			return unix.EFAULT
		}
	}
	return 0
}

// errWrite says that the memory of a live caller cannot be written, which the kernel could do.
var errWrite = errors.New("the memory of the caller cannot be written")
