package broker

import (
	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
)

// olderLooks are the calls that newer architectures have not: those without a directory descriptor.
func olderLooks(number int32) (look, bool) {
	const cwd, nofollow, write = unix.AT_FDCWD, unix.AT_SYMLINK_NOFOLLOW, fsview.AccessWrite
	switch number {
	case unix.SYS_OPEN:
		return look{"open", func(c *call) { c.lookOpen(cwd, c.args[0], uint64(c.word(1)), 0) }}, true
	case unix.SYS_CREAT:
		return look{"creat", func(c *call) { c.lookOpen(cwd, c.args[0], unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, 0) }}, true
	case unix.SYS_READLINK:
		return look{"readlink", func(c *call) { c.lookFind(cwd, c.args[0], nofollow) }}, true
	case unix.SYS_MKDIR:
		return look{"mkdir", func(c *call) { c.lookMake(cwd, c.args[0], true) }}, true
	case unix.SYS_MKNOD:
		return look{"mknod", func(c *call) { c.lookMake(cwd, c.args[0], false) }}, true
	case unix.SYS_SYMLINK:
		return look{"symlink", func(c *call) { c.lookMake(cwd, c.args[1], false) }}, true
	case unix.SYS_LINK:
		return look{"link", func(c *call) { c.lookLink(cwd, c.args[0], cwd, c.args[1], 0) }}, true
	case unix.SYS_UNLINK:
		return look{"unlink", func(c *call) { c.lookRemove(cwd, c.args[0]) }}, true
	case unix.SYS_RMDIR:
		return look{"rmdir", func(c *call) { c.lookRemove(cwd, c.args[0]) }}, true
	case unix.SYS_RENAME:
		return look{"rename", func(c *call) { c.lookRename(cwd, c.args[0], cwd, c.args[1], 0) }}, true
	case unix.SYS_CHMOD:
		return look{"chmod", func(c *call) { c.lookUse(cwd, c.args[0], 0, write) }}, true
	case unix.SYS_CHOWN:
		return look{"chown", func(c *call) { c.lookUse(cwd, c.args[0], 0, write) }}, true
	case unix.SYS_LCHOWN:
		return look{"lchown", func(c *call) { c.lookUse(cwd, c.args[0], nofollow, write) }}, true
	case unix.SYS_UTIME:
		return look{"utime", func(c *call) { c.lookUse(cwd, c.args[0], 0, write) }}, true
	case unix.SYS_UTIMES:
		return look{"utimes", func(c *call) { c.lookUse(cwd, c.args[0], 0, write) }}, true
	case unix.SYS_FUTIMESAT:
		return look{"futimesat", func(c *call) { c.lookTimes(c.int(0), c.args[1], 0) }}, true
	}
	return look{}, false
}

func olderOpenFlags(number int32, args *[6]uint64) (flags uint64, ok bool) {
	return args[1], number == unix.SYS_OPEN
}
