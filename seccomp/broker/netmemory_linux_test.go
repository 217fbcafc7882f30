package broker

import (
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() { probes["net-pages"] = func(string) any { return netPagesProbe() } }

// netPagesProbe has answers written to memory of all kinds.
func netPagesProbe() notes {
	n := notes{}
	page := unix.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	fatal(err)
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	fatal(connectTo(fd, unix.AF_INET, outside(hostLive, 80)))
	dead := inetSocket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	_ = connectTo(dead, unix.AF_INET, outside(hostDead, 80))
	pollFor(dead, unix.POLLOUT)
	size := uint32(16)
	raw := func(what string, number uintptr, args ...uintptr) {
		args = append(args, 0, 0)
		_, _, errno := unix.Syscall6(number, args[0], args[1], args[2], args[3], args[4], 0)
		n.err(what, asError(errno))
	}
	peer := func(what string, at *byte, size *uint32) {
		raw(what, unix.SYS_GETPEERNAME, uintptr(fd), uintptr(unsafe.Pointer(at)), uintptr(unsafe.Pointer(size)))
	}
	peer("writable", &memory[0], &size)
	peer("over an edge", &memory[page-4], &size)
	fatal(unix.Mprotect(memory[page:2*page], unix.PROT_READ))
	peer("read-only", &memory[page], &size)
	peer("in part", &memory[page-4], &size)
	n.err("untouched", untouched(memory[page:2*page]))
	short := (*uint32)(unsafe.Pointer(&memory[page]))
	peer("read-only size", &memory[0], short)
	raw("error", unix.SYS_GETSOCKOPT, uintptr(dead), unix.SOL_SOCKET, unix.SO_ERROR, uintptr(unsafe.Pointer(&memory[page])), uintptr(unsafe.Pointer(&size)))
	fatal(unix.Mprotect(memory[2*page:], unix.PROT_NONE))
	peer("nothing", &memory[2*page], &size)
	return n
}

func untouched(memory []byte) error {
	for i := range memory {
		if memory[i] != 0 && i >= 12 {
			return unix.EBADMSG
		}
	}
	return nil
}

// An answer goes only to where its caller may write.
func TestNet_AnswersKeepToTheCallersMemory(t *testing.T) {
	noFailures(t, runNotes(t, netSetup(t, newGate(t), "net-pages"), notes{"writable": "ok", "over an edge": "ok", "read-only": "EFAULT",
		"in part": "EFAULT", "untouched": "ok", "read-only size": "EFAULT", "error": "EFAULT", "nothing": "EFAULT"}))
}

func TestWritableIn(t *testing.T) {
	const maps = `1000-2000 rw-p 00000000 00:00 0 [heap]
2000-3000 rw-s 00000000 00:00 0
3000-4000 r--p 00000000 00:00 0 /a b
5000-6000 -w-p 00000000 00:00 0
`
	for _, c := range []struct {
		at   uint64
		size int
		want bool
	}{{0x1000, 16, true}, {0x1ff8, 16, true}, {0x2ff0, 16, true}, {0x2ff1, 16, false}, {0x3000, 1, false}, {0x4ff8, 16, false}, {0x5000, 16, true},
		{0x6000, 1, false}, {0xff8, 16, false}, {0x9000, 0, true}, {1<<64 - 4, 8, false}, {1<<64 - 9, 8, false}} {
		got, err := writableIn(strings.NewReader(maps), []part{{c.at, make([]byte, c.size)}, {0x1000, make([]byte, 4)}})
		if got != c.want || err != nil {
			t.Errorf("%#x, %d bytes: %v, %v", c.at, c.size, got, err)
		}
	}
	for _, text := range []string{"x", "1000 rw-p\n", "10-20\n", "-1-20 rw-p\n"} {
		if _, err := writableIn(strings.NewReader(text), []part{{0x1000, []byte{1}}}); err == nil {
			t.Errorf("%q is understood", text)
		}
	}
}
