package broker

import (
	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
)

// look is how a call is looked at: what its arguments are about.
type look struct {
	name string
	at   func(c *call)
}

// looks finds the look of a call by its number.
func looks(arch uint32, number int32) (look, bool) {
	if arch != nativeArch() {
		return look{}, false
	}
	for _, find := range [...]func(int32) (look, bool){openLooks, nameLooks, attributeLooks, olderLooks} {
		if l, ok := find(number); ok {
			return l, true
		}
	}
	return look{}, false
}

// openLooks are the calls that open, execute or go somewhere.
func openLooks(number int32) (look, bool) {
	const read = fsview.AccessRead
	switch number {
	case unix.SYS_OPENAT:
		return look{"openat", func(c *call) { c.lookOpen(c.int(0), c.args[1], uint64(c.word(2)), 0) }}, true
	case unix.SYS_OPENAT2:
		return look{"openat2", func(c *call) { c.lookOpen2(c.int(0), c.args[1], c.args[2], c.args[3]) }}, true
	case unix.SYS_EXECVE:
		return look{"execve", func(c *call) { c.lookUse(unix.AT_FDCWD, c.args[0], 0, read) }}, true
	case unix.SYS_EXECVEAT:
		return look{"execveat", func(c *call) { c.lookUse(c.int(0), c.args[1], c.word(4), read) }}, true
	case unix.SYS_READLINKAT:
		return look{"readlinkat", func(c *call) { c.lookFind(c.int(0), c.args[1], unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) }}, true
	case unix.SYS_CHDIR:
		return look{"chdir", func(c *call) { c.lookFind(unix.AT_FDCWD, c.args[0], 0) }}, true
	case unix.SYS_TRUNCATE:
		return look{"truncate", func(c *call) { c.lookTruncate(c.args[0]) }}, true
	}
	return look{}, false
}

// nameLooks are the calls that make, move or take away names.
func nameLooks(number int32) (look, bool) {
	switch number {
	case unix.SYS_MKDIRAT:
		return look{"mkdirat", func(c *call) { c.lookMake(c.int(0), c.args[1], true) }}, true
	case unix.SYS_MKNODAT:
		return look{"mknodat", func(c *call) { c.lookMake(c.int(0), c.args[1], false) }}, true
	case unix.SYS_SYMLINKAT:
		return look{"symlinkat", func(c *call) { c.lookMake(c.int(1), c.args[2], false) }}, true
	case unix.SYS_LINKAT:
		return look{"linkat", func(c *call) { c.lookLink(c.int(0), c.args[1], c.int(2), c.args[3], c.word(4)) }}, true
	case unix.SYS_UNLINKAT:
		return look{"unlinkat", func(c *call) { c.lookRemove(c.int(0), c.args[1]) }}, true
	case unix.SYS_RENAMEAT:
		return look{"renameat", func(c *call) { c.lookRename(c.int(0), c.args[1], c.int(2), c.args[3], 0) }}, true
	case unix.SYS_RENAMEAT2:
		return look{"renameat2", func(c *call) { c.lookRename(c.int(0), c.args[1], c.int(2), c.args[3], c.word(4)) }}, true
	}
	return look{}, false
}

// attributeLooks are the calls that change what is known of a file: mode, owner, times, extended attributes.
func attributeLooks(number int32) (look, bool) {
	const cwd, nofollow, write = unix.AT_FDCWD, unix.AT_SYMLINK_NOFOLLOW, fsview.AccessWrite
	switch number {
	case unix.SYS_FCHMOD:
		return look{"fchmod", func(c *call) { c.lookFD(c.int(0)) }}, true
	case unix.SYS_FCHOWN:
		return look{"fchown", func(c *call) { c.lookFD(c.int(0)) }}, true
	case unix.SYS_FSETXATTR:
		return look{"fsetxattr", func(c *call) { c.lookFD(c.int(0)) }}, true
	case unix.SYS_FREMOVEXATTR:
		return look{"fremovexattr", func(c *call) { c.lookFD(c.int(0)) }}, true
	case unix.SYS_FCHMODAT:
		return look{"fchmodat", func(c *call) { c.lookUse(c.int(0), c.args[1], 0, write) }}, true
	case unix.SYS_FCHMODAT2:
		return look{"fchmodat2", func(c *call) { c.lookUse(c.int(0), c.args[1], c.word(3), write) }}, true
	case unix.SYS_FCHOWNAT:
		return look{"fchownat", func(c *call) { c.lookUse(c.int(0), c.args[1], c.word(4), write) }}, true
	case unix.SYS_UTIMENSAT:
		return look{"utimensat", func(c *call) { c.lookTimes(c.int(0), c.args[1], c.word(3)) }}, true
	case unix.SYS_SETXATTR:
		return look{"setxattr", func(c *call) { c.lookUse(cwd, c.args[0], 0, write) }}, true
	case unix.SYS_LSETXATTR:
		return look{"lsetxattr", func(c *call) { c.lookUse(cwd, c.args[0], nofollow, write) }}, true
	case unix.SYS_SETXATTRAT:
		return look{"setxattrat", func(c *call) { c.lookUse(c.int(0), c.args[1], c.word(2), write) }}, true
	case unix.SYS_REMOVEXATTR:
		return look{"removexattr", func(c *call) { c.lookUse(cwd, c.args[0], 0, write) }}, true
	case unix.SYS_LREMOVEXATTR:
		return look{"lremovexattr", func(c *call) { c.lookUse(cwd, c.args[0], nofollow, write) }}, true
	case unix.SYS_REMOVEXATTRAT:
		return look{"removexattrat", func(c *call) { c.lookUse(c.int(0), c.args[1], c.word(2), write) }}, true
	}
	return look{}, false
}

// openFlags gives the flags of the openings that have them in a register.
func openFlags(number int32, args *[6]uint64) (flags uint64, ok bool) {
	if number == unix.SYS_OPENAT {
		return args[2], true
	}
	return olderOpenFlags(number, args)
}

// lookOpen looks at an opening. The rules are those of do_open and may_open of fs/namei.c.
func (c *call) lookOpen(dirfd int32, at, flags, resolve uint64) {
	how := openHow{flags: flags, resolve: resolve}
	writes := how.writes()
	switch {
	case flags&unix.O_PATH != 0:
		return // it opens nothing to read or write
	case !writes && !how.creates() && !c.s.config.Observe.Reads:
		return
	}
	exclusive := how.creates() && flags&unix.O_EXCL != 0
	where, ok := c.spotAt(dirfd, at, wanted{follow: flags&unix.O_NOFOLLOW == 0 && !exclusive, noSlash: how.creates(), resolve: resolve})
	switch {
	case !ok:
	case where.fd < 0 && how.creates():
		c.seeMake(&where)
	case where.fd < 0 && writes:
		c.seeUse(&where, fsview.AccessWrite)
	case where.fd < 0:
		c.seeUse(&where, fsview.AccessRead)
	case exclusive:
		// there is one
	case writes && c.judge(where.path, fsview.AccessWrite).Denied:
		if c.opens(&where, how) {
			c.seeUse(&where, fsview.AccessWrite)
		}
	case c.s.config.Observe.Reads && flags&unix.O_ACCMODE != unix.O_WRONLY && c.judge(where.path, fsview.AccessRead).Denied:
		if c.opens(&where, how) {
			c.seeUse(&where, fsview.AccessRead)
		}
	}
}

// opens tells whether the kernel comes to ask whether it may open what is there in a way: else the call fails by itself.
func (c *call) opens(where *spot, how openHow) bool {
	kind := where.kind(c)
	switch {
	case how.flags&flagTmpfile != 0, how.flags&unix.O_DIRECTORY != 0 && !how.creates() && !how.writes():
		return kind == unix.S_IFDIR
	case kind == unix.S_IFDIR:
		return !how.writes() && !how.creates()
	}
	return kind != unix.S_IFLNK && how.flags&unix.O_DIRECTORY == 0
}

func (c *call) lookOpen2(dirfd int32, at, howAt, size uint64) {
	if checkHowSize(size) != 0 {
		return
	}
	b, errno := c.bytesAt(howAt, int(size))
	if errno != 0 {
		return
	}
	if how, errno := parseHow(b); errno == 0 && how.resolve&resolveCached == 0 {
		c.lookOpen(dirfd, at, how.flags, how.resolve)
	}
}

// lookUse looks at a call on an object that is there. flags are AT_SYMLINK_NOFOLLOW and AT_EMPTY_PATH.
func (c *call) lookUse(dirfd int32, at uint64, flags uint32, a fsview.Access) {
	where, ok := c.spotAt(dirfd, at, wanted{follow: flags&unix.AT_SYMLINK_NOFOLLOW == 0, empty: flags&unix.AT_EMPTY_PATH != 0})
	if ok {
		c.seeUse(&where, a)
	}
}

// lookFind looks at a call that neither a mount nor Landlock refuses on what is there: it may not find what something hides.
func (c *call) lookFind(dirfd int32, at uint64, flags uint32) {
	where, ok := c.spotAt(dirfd, at, wanted{follow: flags&unix.AT_SYMLINK_NOFOLLOW == 0, empty: flags&unix.AT_EMPTY_PATH != 0})
	if ok && where.fd < 0 {
		c.seeUse(&where, fsview.AccessRead)
	}
}

// lookTruncate looks at truncate(2), which says EISDIR or EINVAL of all but regular files first.
func (c *call) lookTruncate(at uint64) {
	where, ok := c.spotAt(unix.AT_FDCWD, at, wanted{follow: true})
	if ok && (where.fd < 0 || where.kind(c) == unix.S_IFREG) {
		c.seeUse(&where, fsview.AccessWrite)
	}
}

// lookFD looks at a change of an object by its descriptor.
func (c *call) lookFD(fd int32) {
	if where, ok := c.spotOf(fd); ok {
		c.seeUse(&where, fsview.AccessWrite)
	}
}

// lookTimes looks at a change of times, of a descriptor's object without a path (utimensat(2)).
func (c *call) lookTimes(dirfd int32, at uint64, flags uint32) {
	if at == 0 {
		c.lookFD(dirfd)
		return
	}
	c.lookUse(dirfd, at, flags, fsview.AccessWrite)
}

// lookMake looks at the making of a name, of a directory or not.
func (c *call) lookMake(dirfd int32, at uint64, directory bool) (where spot, ok bool) {
	if where, ok = c.spotAt(dirfd, at, wanted{name: true, noSlash: !directory}); ok {
		c.seeMake(&where)
	}
	return where, ok
}

func (c *call) lookRemove(dirfd int32, at uint64) {
	if where, ok := c.spotAt(dirfd, at, wanted{name: true}); ok {
		c.seeRemove(&where)
	}
}

// lookLink looks at the making of a further name: the new one is judged (VIO-10).
func (c *call) lookLink(fromFD int32, from uint64, toFD int32, to uint64, flags uint32) {
	old, ok := c.spotAt(fromFD, from, wanted{follow: flags&unix.AT_SYMLINK_FOLLOW != 0, empty: flags&unix.AT_EMPTY_PATH != 0})
	if !ok || old.errno == unix.ENOENT {
		return
	}
	if next, ok := c.lookMake(toFD, to, false); ok && next.fd < 0 {
		c.seePair(&old, &next)
	}
}

// seePair notes the other path of what was seen of a call with two, and where nothing was, that both are allowed and the way
// between them is not: no name goes from one mount to another, though they show the same file system.
func (c *call) seePair(old, next *spot) {
	for i := range c.seen {
		if c.seen[i].Other = next.path; c.seen[i].Path == next.path {
			c.seen[i].Other = old.path
		}
	}
	if len(c.seen) > 0 || old.fd < 0 || next.fd < 0 && !next.inDir {
		return
	}
	to := next.fd
	if to < 0 {
		to = next.dir
	}
	one, errno := c.look(old.fd)
	two, errno2 := c.look(to)
	switch {
	case errno != 0, errno2 != 0, one.Mnt_id == two.Mnt_id, one.Dev_major != two.Dev_major, one.Dev_minor != two.Dev_minor:
		return
	case one.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, next.fd >= 0 && two.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0:
		return // what is a mount itself stays in its place
	}
	c.seen = append(c.seen, Denial{Call: c.name, Path: next.path, Other: old.path, Apart: true, Access: fsview.AccessCreate, Observed: true})
}

// lookRename looks at both names (VIO-10).
func (c *call) lookRename(fromFD int32, from uint64, toFD int32, to uint64, flags uint32) {
	old, ok := c.spotAt(fromFD, from, wanted{name: true})
	if !ok {
		return
	}
	next, ok := c.spotAt(toFD, to, wanted{name: true})
	switch {
	case !ok, next.fd < 0 && next.errno == unix.ENOENT && !next.inDir:
		return // the directories count first
	case flags&unix.RENAME_NOREPLACE != 0 && next.fd >= 0:
		return
	case c.seeRemove(&old):
	case old.errno == unix.ENOENT:
		return // there is nothing to move
	}
	defer c.seePair(&old, &next)
	if next.fd >= 0 && c.seeRemove(&next) || next.fd < 0 && c.seeMake(&next) {
		return
	}
	if v := c.judge(next.path, fsview.AccessCreate); next.fd >= 0 && v.Denied && !v.Substitute {
		c.deny(next.path, fsview.AccessCreate)
	}
}
