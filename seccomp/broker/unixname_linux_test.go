package broker

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzUnixConnect has the kernel connect to every address in which unixName finds no path: it must find none either, since such
// an address is not judged.
func FuzzUnixConnect(f *testing.F) {
	for _, s := range []string{"", "\x01", "\x01\x00", "\x01\x00a", "\x01\x00\x00abstract", "\x00\x00/run/x", "\x02\x00/run/x", "\x01\x01/run/x",
		"\x01\x00/run/x\x00rest", "\x01\x00\x00", "\x01\x00" + string(make([]byte, 108)), "\x01\x00" + string(make([]byte, 109))} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, address []byte) {
		if len(address) > sockaddrMax {
			return
		}
		if path, ok := unixName(address); ok {
			if path == "" || slices.Contains([]byte(path), 0) || len(path) > unixMax-unixPath || string(address[unixPath:][:len(path)]) != path {
				t.Errorf("%q has the path %q", address, path)
			}
			if got, ok := unixName(unixAddress(path)); !ok || got != path {
				t.Errorf("the address of %q has the path %q, %t", path, got, ok)
			}
			return
		}
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
			fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			memory := append([]byte(nil), address...)
			memory = append(memory, "/nothing/at/all"...) // what lies behind it is no part of it
			_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), pointerOf(&memory[0]), uintptr(len(address)))
			unix.Close(fd)
			if errno != 0 && !slices.ContainsFunc([]error{unix.EINVAL, unix.ECONNREFUSED, unix.EPROTOTYPE, unix.EAGAIN}, func(e error) bool { return errors.Is(errno, e) }) {
				t.Errorf("%q: %v", address, errno)
			}
		}
	})
}
