package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ipcStat is IPC_STAT of shmctl(2).
const ipcStat = 2

// scratch is the address of a page of zeros that the kernel may read and write.
func scratch() uintptr {
	page, err := unix.MmapPtr(-1, 0, nil, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic(err)
	}
	return uintptr(page)
}

func raw(number, a, b, c uintptr) error {
	if _, _, errno := unix.RawSyscall(number, a, b, c); errno != 0 {
		return errno
	}
	return nil
}

func openat2create(a []string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, a[0], &unix.OpenHow{Flags: unix.O_WRONLY | unix.O_CREAT | unix.O_CLOEXEC, Mode: 0o644})
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// tmplink gives a file without a name in a directory a name.
func tmplink(a []string) error {
	fd, err := unix.Open(a[0], unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, a[1], unix.AT_SYMLINK_FOLLOW)
}

// bind makes a Unix socket at a path.
func bind(a []string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrUnix{Name: a[0]})
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func open(flags int, text string) func([]string) error {
	return func(a []string) error {
		fd, err := unix.Open(a[0], flags|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if text == "" {
			return nil
		}
		_, err = unix.Write(fd, []byte(text))
		return err
	}
}

func read(path string, judge func([]byte) error) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return judge(data)
}

func contains(text string) func([]byte) error {
	return func(data []byte) error {
		if !bytes.Contains(data, []byte(text)) {
			return fmt.Errorf("holds %q", data)
		}
		return nil
	}
}

func size0(a []string) error {
	info, err := os.Lstat(a[0])
	if err == nil && info.Size() != 0 {
		err = fmt.Errorf("%d bytes", info.Size())
	}
	return err
}

func empty(a []string) error {
	entries, err := os.ReadDir(a[0])
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("holds %v", entries)
	}
	return err
}

// fdir0create creates a file in the directory that is standard input.
func fdir0create(a []string) error {
	fd, err := unix.Openat(0, a[0], unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func connect(a []string) error {
	c, err := net.Dial("tcp", a[0])
	if err == nil {
		c.Close()
	}
	return err
}

func socket(a []string) error {
	fd, err := unix.Socket(number(a[0]), number(a[1])|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func socketpair(a []string) error {
	_, err := unix.Socketpair(number(a[0]), number(a[1])|unix.SOCK_CLOEXEC, 0)
	return err
}

func searchkey(a []string) error {
	_, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", a[0], 0)
	return err
}

// settime sets the clock to what it shows.
func settime([]string) error {
	var now unix.Timeval
	if err := unix.Gettimeofday(&now); err != nil {
		return err
	}
	return unix.Settimeofday(&now)
}
