package bpf

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawCall makes one of the traced calls in a process of the tests: "NAME PATH", each path as an argument of the call where
// the table of calls says it is. A path "FILE|NAME" is NAME in the directory FILE as a descriptor, and "FILE|" the
// descriptor itself.
func rawCall(line string) error {
	name, rest, _ := strings.Cut(line, " ")
	calls := tracedCalls()
	i := slices.IndexFunc(calls, func(c tracedCall) bool { return c.name == name })
	if i < 0 {
		return fmt.Errorf("no call %s", name)
	}
	c := calls[i]
	var pin runtime.Pinner
	defer pin.Unpin()
	args := otherArguments(name, &pin)
	for i, p := range strings.Fields(rest) {
		dir, text, hasDir := strings.Cut(p, "|")
		if !hasDir {
			dir, text = "", p
		}
		fd := unix.AT_FDCWD
		if hasDir {
			var err error
			if fd, err = unix.Open(dir, openFlags[name]|unix.O_CLOEXEC, 0); err != nil {
				return fmt.Errorf("open %s: %w", dir, err)
			}
			defer unix.Close(fd)
		}
		if c.dir[i] != none {
			args[c.dir[i]] = uintptr(fd)
		}
		if c.path[i] != none && text != "NULL" {
			args[c.path[i]] = pointer(&pin, append([]byte(text), 0))
		}
	}
	_, _, errno := unix.Syscall6(uintptr(c.number), args[0], args[1], args[2], args[3], args[4], args[5])
	if errno != 0 {
		return errno
	}
	return nil
}

// openFlags are how the descriptor of a call is opened, where reading is not it.
var openFlags = map[string]int{"fchdir": unix.O_PATH}

func pointer(pin *runtime.Pinner, b []byte) uintptr {
	pin.Pin(&b[0])
	return uintptr(unsafe.Pointer(&b[0]))
}

// otherArguments are those of a call that are no paths, as far as it would complain about zeroes.
func otherArguments(name string, pin *runtime.Pinner) (a [6]uintptr) {
	text := func(s string) uintptr { return pointer(pin, append([]byte(s), 0)) }
	switch name {
	case "open":
		a[1] = unix.O_WRONLY
	case "openat":
		a[2] = unix.O_WRONLY
	case "openat2":
		a[2], a[3] = pointer(pin, le.AppendUint64(le.AppendUint64(le.AppendUint64(nil, unix.O_WRONLY), 0), 0)), 24
	case "mknod":
		a[1] = unix.S_IFIFO
	case "mknodat":
		a[2] = unix.S_IFIFO
	case "link":
		a[0] = text("/proc/self/exe")
	case "linkat":
		a[0], a[1] = ^uintptr(99), text(os.Args[0])
		a[2] = ^uintptr(99)
	case "symlink", "symlinkat":
		a[0] = text("target")
	case "readlink":
		a[1], a[2] = pointer(pin, make([]byte, 64)), 64
	case "readlinkat":
		a[2], a[3] = pointer(pin, make([]byte, 64)), 64
	case "setxattr", "lsetxattr", "fsetxattr":
		a[1], a[2], a[3] = text("user.x"), text("v"), 1
	case "removexattr", "lremovexattr", "fremovexattr":
		a[1] = text("user.x")
	case "setxattrat":
		value := le.AppendUint64(nil, uint64(text("v")))
		a[3], a[4], a[5] = text("user.x"), pointer(pin, append(value, words(1, 0)...)), 16
	case "removexattrat":
		a[3] = text("user.x")
	}
	return a
}

// open opens a path for reading.
func openForReading(name string) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// repeat makes many refused calls: "COUNT PATH".
func repeat(line string) error {
	var count int
	var name string
	if _, err := fmt.Sscan(line, &count, &name); err != nil {
		return err
	}
	for range count {
		if err := unix.Mkdir(name, 0o700); err != unix.EACCES {
			return fmt.Errorf("mkdir: %w", err)
		}
	}
	return nil
}

// traceForever traces a sandbox until this process is killed.
func traceForever(string) error {
	t, err := LoadTracer()
	if err != nil {
		return err
	}
	sandbox := childCommand(0, unix.CLONE_NEWUSER)
	if _, err := sandbox.StdinPipe(); err != nil { // it waits for a line
		return err
	}
	if err := sandbox.Start(); err != nil {
		return err
	}
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", sandbox.Process.Pid))
	if err != nil {
		return err
	}
	defer namespace.Close()
	_, err = t.Trace(namespace, TraceOptions{}, func(Refused) bool { return true })
	return err
}

// markPipe gives an attribute to the end of a pipe, which may have none (xattr(7)).
func markPipe(string) error {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	return unix.Fsetxattr(ends[0], "user.x", []byte("v"), 0)
}
