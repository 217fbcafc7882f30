package broker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/broker/internal/mapping"
)

// Some answers are more than a number, and go to the caller's memory. It is reached by way of the thread's directory in
// /proc: a number could mean another process by the time that something is written. That way the kernel writes to memory
// that the caller may only read as well (proc_pid_mem(5)), so what the caller may is asked for before.

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
	parts := [...]part{{at, value[:n]}, {sizeAt, nativeBytes(int32(told))}}
	memory := -1
	writable := true
	err := c.onThread(func(t *thread) (err error) {
		if writable, err = t.mayWrite(parts[:]); err != nil {
			return err
		}
		memory, err = unix.Openat(t.dir, "mem", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return c.broken(errors.Join(errWrite, err))
	}
	defer unix.Close(memory)
	switch {
	case !c.waits():
		return unix.EINTR // it may be another process's
	case !writable:
		return unix.EFAULT
	}
	for _, p := range parts {
		if len(p.what) == 0 {
			continue
		}
		if written, err := unix.Pwrite(memory, p.what, int64(p.at)); err != nil || written < len(p.what) {
			return unix.EFAULT
		}
	}
	return 0
}

// part is what is to be written, and where.
type part struct {
	at   uint64
	what []byte
}

// mayWrite tells whether the thread may write to all that is to be written (proc_pid_maps(5)).
func (t *thread) mayWrite(parts []part) (bool, error) {
	fd, err := unix.Openat(t.dir, "maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	f := os.NewFile(uintptr(fd), "maps")
	defer f.Close()
	may, err := writableAt(fd, parts)
	if errors.Is(err, mapping.ErrUnsupported) {
		return writableIn(f, parts)
	}
	return may, err
}

// writableAt asks about each place alone: a process can have very many mappings.
func writableAt(maps int, parts []part) (bool, error) {
	for _, p := range parts {
		for at := p.at; at-p.at < uint64(len(p.what)); {
			end, err := mapping.Writable(maps, at)
			if err != nil || end <= at {
				return false, err
			}
			at = end
		}
	}
	return true, nil
}

// errMaps says that the kernel's account of a process's memory is not understood.
var errMaps = errors.New("a line of /proc/PID/maps is not understood")

// writableIn tells whether a list of mappings, which is in the order of their addresses, has all parts writable.
func writableIn(maps io.Reader, parts []part) (bool, error) {
	left := make([]uint64, len(parts)) // the first byte of each that is not found yet
	for i, p := range parts {
		left[i] = p.at
	}
	done := func() bool {
		for i, p := range parts {
			if left[i]-p.at < uint64(len(p.what)) {
				return false
			}
		}
		return true
	}
	lines := bufio.NewScanner(maps)
	for !done() && lines.Scan() {
		place, rights, _ := strings.Cut(lines.Text(), " ")
		from, to, _ := strings.Cut(place, "-")
		start, err := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err != nil || err2 != nil || len(rights) < 2 {
			return false, errMaps
		}
		for i := range left {
			if rights[1] == 'w' && start <= left[i] && left[i] < end {
				left[i] = end
			}
		}
	}
	return done(), lines.Err()
}

// errWrite says that the memory of a live caller cannot be written, which the kernel could do.
var errWrite = errors.New("the memory of the caller cannot be written")
