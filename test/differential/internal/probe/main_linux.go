// Command probe does one operation for each JSON line on standard input, and answers each with a JSON line on standard
// output. The differential test runs it in a sandbox. It ends at the end of its input.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// request is an operation of package model with paths of the host. Names need not be UTF-8.
type request struct {
	Do   string
	A, B []byte
	Text string
	Mode uint32
	At   bool
}

// answer is "ok" or the name of an errno, and what the operation gave.
type answer struct {
	Outcome string
	Value   []byte
}

func main() {
	unix.Umask(0o022)
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		var r request
		if err := in.Decode(&r); err != nil {
			return
		}
		value, err := r.do()
		if err := out.Encode(answer{outcome(err), []byte(value)}); err != nil {
			os.Exit(1)
		}
	}
}

func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// spot is a path as a system call takes it: a descriptor and a name.
type spot struct {
	fd   int
	name string
}

func (r *request) spot(p []byte) (spot, error) {
	if !r.At {
		return spot{unix.AT_FDCWD, string(p)}, nil
	}
	fd, err := unix.Open(filepath.Dir(string(p)), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return spot{fd, filepath.Base(string(p))}, err
}

func (s spot) close() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
	}
}

func (r *request) do() (string, error) {
	act, ok := operations[r.Do]
	if !ok {
		return "", fmt.Errorf("no operation %q", r.Do)
	}
	a, err := r.spot(r.A)
	if err != nil {
		return "", err
	}
	defer a.close()
	return act(r, a)
}

var operations map[string]func(r *request, a spot) (string, error)

func init() {
	operations = map[string]func(r *request, a spot) (string, error){
		"read": read, "list": list, "stat": stat(0), "lstat": stat(unix.AT_SYMLINK_NOFOLLOW), "readlink": readlink,
		"write":    write(unix.O_WRONLY | unix.O_TRUNC),
		"append":   write(unix.O_WRONLY | unix.O_APPEND),
		"create":   write(unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL),
		"creat":    write(unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC),
		"truncate": truncate, "tmpfile": tmpfile,
		"mkdir":     plain(func(_ *request, a spot) error { return unix.Mkdirat(a.fd, a.name, 0o755) }),
		"mkfifo":    plain(func(_ *request, a spot) error { return unix.Mkfifoat(a.fd, a.name, 0o644) }),
		"mknod":     plain(func(_ *request, a spot) error { return unix.Mknodat(a.fd, a.name, unix.S_IFREG|0o644, 0) }),
		"symlink":   plain(func(r *request, a spot) error { return unix.Symlinkat(string(r.B), a.fd, a.name) }),
		"unlink":    plain(func(_ *request, a spot) error { return unix.Unlinkat(a.fd, a.name, 0) }),
		"rmdir":     plain(func(_ *request, a spot) error { return unix.Unlinkat(a.fd, a.name, unix.AT_REMOVEDIR) }),
		"chmod":     plain(func(r *request, a spot) error { return unix.Fchmodat(a.fd, a.name, r.Mode, 0) }),
		"utime":     plain(func(_ *request, a spot) error { return unix.UtimesNanoAt(a.fd, a.name, make([]unix.Timespec, 2), 0) }),
		"link":      two(func(a, b spot) error { return unix.Linkat(a.fd, a.name, b.fd, b.name, 0) }),
		"rename":    two(func(a, b spot) error { return unix.Renameat(a.fd, a.name, b.fd, b.name) }),
		"noreplace": two(func(a, b spot) error { return unix.Renameat2(a.fd, a.name, b.fd, b.name, unix.RENAME_NOREPLACE) }),
		"exchange":  two(func(a, b spot) error { return unix.Renameat2(a.fd, a.name, b.fd, b.name, unix.RENAME_EXCHANGE) }),
	}
}

func plain(f func(r *request, a spot) error) func(*request, spot) (string, error) {
	return func(r *request, a spot) (string, error) { return "", f(r, a) }
}

func two(f func(a, b spot) error) func(*request, spot) (string, error) {
	return func(r *request, a spot) (string, error) {
		b, err := r.spot(r.B)
		if err != nil {
			return "", err
		}
		defer b.close()
		return "", f(a, b)
	}
}

func open(a spot, flags int) (*os.File, error) {
	fd, err := unix.Openat(a.fd, a.name, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), a.name), nil
}

func read(_ *request, a spot) (string, error) {
	f, err := open(a, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	buf := make([]byte, 1<<16)
	n, err := unix.Read(int(f.Fd()), buf)
	return string(buf[:max(n, 0)]), err
}

func list(_ *request, a spot) (string, error) {
	f, err := open(a, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return strings.Join(names, "\n"), err
}

func stat(flags int) func(*request, spot) (string, error) {
	return func(_ *request, a spot) (string, error) {
		var st unix.Stat_t
		if err := unix.Fstatat(a.fd, a.name, &st, flags); err != nil {
			return "", err
		}
		switch mode := st.Mode & 0o7777; st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			return fmt.Sprintf("f %04o %d", mode, st.Size), nil
		case unix.S_IFDIR:
			return fmt.Sprintf("d %04o", mode), nil
		case unix.S_IFIFO:
			return fmt.Sprintf("p %04o", mode), nil
		case unix.S_IFLNK:
			return "l", nil
		}
		return fmt.Sprintf("mode %o", st.Mode), nil
	}
}

func readlink(_ *request, a spot) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(a.fd, a.name, buf)
	return string(buf[:max(n, 0)]), err
}

func write(flags int) func(*request, spot) (string, error) {
	return func(r *request, a spot) (string, error) {
		f, err := open(a, flags)
		if err != nil {
			return "", err
		}
		defer f.Close()
		_, err = f.WriteString(r.Text)
		return "", err
	}
}

func truncate(r *request, _ spot) (string, error) {
	return "", unix.Truncate(string(r.A), int64(len(r.Text)))
}

// tmpfile makes a file without a name and gives it one last (open(2), O_TMPFILE).
func tmpfile(r *request, a spot) (string, error) {
	f, err := open(spot{unix.AT_FDCWD, filepath.Dir(string(r.A))}, unix.O_WRONLY|unix.O_TMPFILE)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := f.WriteString(r.Text); err != nil {
		return "", err
	}
	return "", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), a.fd, a.name, unix.AT_SYMLINK_FOLLOW)
}
