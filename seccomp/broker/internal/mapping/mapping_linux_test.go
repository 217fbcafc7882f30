package mapping

import (
	"errors"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestWritable(t *testing.T) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	page := uint64(unix.Getpagesize())
	memory, err := unix.Mmap(-1, 0, 4*int(page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	for i, protection := range []int{unix.PROT_READ, unix.PROT_READ | unix.PROT_WRITE, unix.PROT_NONE} {
		if err := unix.Mprotect(memory[i*int(page):(i+1)*int(page)], protection); err != nil {
			t.Fatal(err)
		}
	}
	start := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	for _, c := range []struct {
		name    string
		address uint64
		end     uint64
	}{
		{"read-only", start, 0},
		{"writable", start + page, start + 2*page},
		{"its last byte", start + 2*page - 1, start + 2*page},
		{"no access", start + 2*page, 0},
		{"the null page", 8, 0},
		{"beyond all", 1<<63 + 8, 0},
	} {
		end, err := Writable(int(maps.Fd()), c.address)
		if errors.Is(err, ErrUnsupported) {
			var name unix.Utsname
			_ = unix.Uname(&name) // says what it can
			t.Skipf("want Linux 6.11 or later, got %s", unix.ByteSliceToString(name.Release[:]))
		}
		if err != nil || end != c.end {
			t.Errorf("%s: %#x, %v; want %#x", c.name, end, err, c.end)
		}
	}
}
