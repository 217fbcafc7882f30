// Command probe does operations one after another and prints the outcome of each on a line of its own: "ok", or the
// name of the errno. The tests run it in a sandbox. Operations are separated by arguments that are ";".
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	words := os.Args[1:]
	for len(words) > 0 {
		end := slices.Index(words, ";")
		if end < 0 {
			end = len(words)
		}
		fmt.Println(outcome(words[:end]))
		words = words[min(end+1, len(words)):]
	}
}

func outcome(words []string) string {
	if len(words) == 0 {
		return "no operation"
	}
	op, ok := operations[words[0]]
	if !ok || len(words)-1 != op.args {
		return "usage of " + words[0]
	}
	err := op.do(words[1:])
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// operation takes so many arguments.
type operation struct {
	args int
	do   func(a []string) error
}

var operations = map[string]operation{
	"read":          {1, func(a []string) error { return read(a[0], func([]byte) error { return nil }) }},
	"holds":         {2, func(a []string) error { return read(a[0], contains(a[1])) }},
	"size0":         {1, size0},
	"list":          {1, func(a []string) error { _, err := os.ReadDir(a[0]); return err }},
	"empty":         {1, empty},
	"stat":          {1, func(a []string) error { var st unix.Stat_t; return unix.Stat(a[0], &st) }},
	"lstat":         {1, func(a []string) error { var st unix.Stat_t; return unix.Lstat(a[0], &st) }},
	"write":         {1, open(unix.O_WRONLY, "x")},
	"openwrite":     {1, open(unix.O_WRONLY, "")},
	"append":        {1, open(unix.O_WRONLY|unix.O_APPEND, "x")},
	"truncate":      {1, func(a []string) error { return unix.Truncate(a[0], 0) }},
	"otruncate":     {1, open(unix.O_WRONLY|unix.O_TRUNC, "")},
	"create":        {1, open(unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, "made")},
	"fifowrite":     {1, open(unix.O_RDWR|unix.O_NONBLOCK, "x")},
	"openat2create": {1, openat2create},
	"mkdir":         {1, func(a []string) error { return unix.Mkdir(a[0], 0o755) }},
	"mkfifo":        {1, func(a []string) error { return unix.Mkfifo(a[0], 0o644) }},
	"symlink":       {2, func(a []string) error { return unix.Symlink(a[0], a[1]) }},
	"link":          {2, func(a []string) error { return unix.Link(a[0], a[1]) }},
	"rename":        {2, func(a []string) error { return unix.Rename(a[0], a[1]) }},
	"renamenew": {2, func(a []string) error {
		return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_NOREPLACE)
	}},
	"exchange": {2, func(a []string) error {
		return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE)
	}},
	"opencreate":  {1, open(unix.O_RDWR|unix.O_CREAT, "made")},
	"tmplink":     {2, tmplink},
	"bind":        {1, bind},
	"unlink":      {1, func(a []string) error { return unix.Unlink(a[0]) }},
	"rmdir":       {1, func(a []string) error { return unix.Rmdir(a[0]) }},
	"chmod":       {1, func(a []string) error { return unix.Chmod(a[0], 0o777) }},
	"chmod000":    {1, func(a []string) error { return unix.Chmod(a[0], 0) }},
	"utime":       {1, func(a []string) error { return unix.Utimes(a[0], make([]unix.Timeval, 2)) }},
	"setxattr":    {1, func(a []string) error { return unix.Setxattr(a[0], "user.srt", []byte("x"), 0) }},
	"chown":       {1, func(a []string) error { return unix.Lchown(a[0], 4242, 4242) }},
	"mkdev":       {1, func(a []string) error { return unix.Mknod(a[0], unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) }},
	"fchmod0":     {0, func([]string) error { return unix.Fchmod(0, 0o777) }},
	"futime0":     {0, func([]string) error { return unix.Futimes(0, make([]unix.Timeval, 2)) }},
	"fsetxattr0":  {0, func([]string) error { return unix.Fsetxattr(0, "user.srt", []byte("x"), 0) }},
	"fdir0create": {1, fdir0create},
	"write0":      {0, func([]string) error { _, err := unix.Write(0, []byte("x")); return err }},
	"kill0":       {1, func(a []string) error { return unix.Kill(number(a[0]), 0) }},
	"kill9":       {1, func(a []string) error { return unix.Kill(number(a[0]), unix.SIGKILL) }},
	"pidfdopen":   {1, func(a []string) error { _, err := unix.PidfdOpen(number(a[0]), 0); return err }},
	"ptrace":      {1, func(a []string) error { return unix.PtraceSeize(number(a[0])) }},
	"connect":     {1, connect},
	"socket":      {2, socket},
	"socketpair":  {2, socketpair},
	"iouring":     {0, func([]string) error { return raw(unix.SYS_IO_URING_SETUP, 1, 0, 0) }},
	"userns":      {0, func([]string) error { return unix.Unshare(unix.CLONE_NEWUSER) }},
	"mountns":     {0, func([]string) error { return unix.Unshare(unix.CLONE_NEWNS) }},
	"clone3":      {0, func([]string) error { return raw(unix.SYS_CLONE3, 0, 0, 0) }},
	"mount":       {2, func(a []string) error { return unix.Mount(a[0], a[1], "", unix.MS_BIND, "") }},
	"umount":      {1, func(a []string) error { return unix.Unmount(a[0], unix.MNT_DETACH) }},
	"setns":       {0, func([]string) error { return unix.Setns(0, 0) }},
	"tiocsti":     {0, func([]string) error { return raw(unix.SYS_IOCTL, 0, unix.TIOCSTI, scratch()) }},
	"tioclinux":   {0, func([]string) error { return raw(unix.SYS_IOCTL, 0, unix.TIOCLINUX, scratch()) }},
	"tiocsetd":    {0, func([]string) error { return raw(unix.SYS_IOCTL, 0, unix.TIOCSETD, scratch()) }},
	"addkey": {0, func([]string) error {
		_, err := unix.AddKey("user", "srt", []byte("x"), unix.KEY_SPEC_USER_KEYRING)
		return err
	}},
	"searchkey": {1, searchkey},
	"revokekey": {1, func(a []string) error {
		_, err := unix.KeyctlInt(unix.KEYCTL_REVOKE, number(a[0]), 0, 0, 0)
		return err
	}},
	"shmstat":   {1, func(a []string) error { return raw(unix.SYS_SHMCTL, uintptr(number(a[0])), ipcStat, scratch()) }},
	"shmremove": {1, func(a []string) error { return raw(unix.SYS_SHMCTL, uintptr(number(a[0])), 0, 0) }},
	"closed":    {1, func(a []string) error { _, err := unix.FcntlInt(uintptr(number(a[0])), unix.F_GETFD, 0); return err }},
	"hostname":  {0, func([]string) error { return unix.Sethostname([]byte("srt-test")) }},
	"settime":   {0, settime},
}
