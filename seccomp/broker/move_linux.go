package broker

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// twoPaths are the arguments of a rename or link. What is wrong with the new path counts only after the old one was
// found.
type twoPaths struct {
	fromDir, toDir int32
	from, to       string
	flags          uint32
	start, end     origin
	toErrno        syscall.Errno
}

// readTwo reads both paths and opens where they start, the old one first, as the kernel does.
func (c *call) readTwo(fromDir int32, from uint64, toDir int32, to uint64, flags uint32) (t twoPaths, errno syscall.Errno) {
	t = twoPaths{fromDir: fromDir, toDir: toDir, flags: flags}
	if t.from, errno = c.pathAt(from); errno != 0 {
		return t, errno
	}
	if t.to, t.toErrno = c.pathAt(to); t.toErrno == 0 && t.to == "" {
		t.toErrno = unix.ENOENT
	}
	c.text = t.to
	if t.from == "" && flags&unix.AT_EMPTY_PATH == 0 {
		return t, unix.ENOENT
	}
	if t.start, errno = c.originOf(fromDir, t.from); errno == 0 && t.toErrno == 0 {
		t.end, t.toErrno = c.originOf(toDir, t.to)
	}
	return t, errno
}

// Flags of renameat2(2).
const renameFlags = unix.RENAME_NOREPLACE | unix.RENAME_EXCHANGE | unix.RENAME_WHITEOUT

// rename performs rename(2), renameat(2) and renameat2(2).
func (c *call) rename(fromDir int32, from uint64, toDir int32, to uint64, flags uint32) outcome {
	if flags&^renameFlags != 0 || flags&unix.RENAME_EXCHANGE != 0 && flags != unix.RENAME_EXCHANGE {
		return failed(unix.EINVAL)
	}
	t, errno := c.readTwo(fromDir, from, toDir, to, 0)
	if errno != 0 {
		return failed(errno)
	}
	t.flags = flags
	judge := c.s.config.Judge
	if judge.Moves() || judge.Reads() || c.s.config.Changes != nil {
		defer c.startMove()()
	}
	c.delayed = true
	out := c.renameBetween(t)
	if flags == 0 && t.toErrno == 0 && (out.errno == unix.EBUSY || out.errno == unix.EROFS) && c.replaced(t) {
		return outcome{sent: true}
	}
	c.tellDelayed()
	return out
}

// renameBetween performs a rename whose arguments have been read.
func (c *call) renameBetween(t twoPaths) outcome {
	judge := c.s.config.Judge
	if t.toErrno == 0 && !c.rooted() && !judge.Reads() && !c.follows() && t.flags&^uint32(unix.RENAME_NOREPLACE) == 0 && !c.suspectPath(t.to) {
		if out, slow := c.renameFast(t); !slow {
			return out
		}
	}
	old, errno := c.locate(t.start, t.from, 0)
	if errno == 0 {
		errno = t.toErrno
	}
	if errno != 0 {
		return failed(errno)
	}
	target, errno := c.renameTarget(t, old)
	if errno != 0 {
		return failed(errno)
	}
	if errno := c.renameFails(old, target, t.flags); errno != 0 {
		return failed(errno)
	}
	if out, denied := c.judgeRename(old, target, t.flags); denied {
		return out
	}
	if c.rooted() && (c.isMountPoint(old) || c.isMountPoint(target)) {
		return failed(unix.EBUSY)
	}
	if c.follows() {
		c.tellMove(old, target)
		if t.flags&unix.RENAME_EXCHANGE != 0 {
			c.tellMove(target, old)
		}
	}
	return c.renameAt(old, target, t.flags)
}

// follows tells whether the judge has to hear of directories that are renamed.
func (c *call) follows() bool {
	f, ok := c.s.config.Judge.(Follower)
	return ok && f.Follows()
}

// tellMove has the judge hear of a directory that is about to be renamed. What cannot be located is left out.
func (c *call) tellMove(from, to place) {
	if i, errno := c.look(from.object); errno != 0 || i.kind() != unix.S_IFDIR {
		return
	}
	before, errno := c.location(from)
	after, errno2 := c.location(to)
	if errno == 0 && errno2 == 0 {
		c.s.config.Judge.(Follower).Renames(before, after)
	}
}

// startMove keeps every other rename, and the making of directories, from happening until the function that it gives is
// called.
func (c *call) startMove() (end func()) {
	c.s.moving.Lock()
	c.s.moves.Add(1)
	c.moving = true
	return func() {
		c.moving = false
		c.s.moves.Add(1)
		c.s.moving.Unlock()
	}
}

// renameFails is the error of a rename that cannot succeed, whatever the judge says, in the kernel's order (do_renameat2 of
// fs/namei.c).
func (c *call) renameFails(old, target place, flags uint32) syscall.Errno {
	from, errno := c.look(old.dir)
	if errno != 0 {
		return errno
	}
	to, errno := c.look(target.dir)
	switch {
	case errno != 0:
		return errno
	case from.Mnt_id != to.Mnt_id:
		return unix.EXDEV
	case !isName(old.last):
		return unix.EBUSY
	case !isName(target.last) && flags&unix.RENAME_NOREPLACE != 0:
		return unix.EEXIST
	case !isName(target.last):
		return unix.EBUSY
	case old.object < 0:
		return old.errno
	case target.object < 0 && target.errno != unix.ENOENT:
		return target.errno
	case target.object >= 0 && flags&unix.RENAME_NOREPLACE != 0:
		return unix.EEXIST
	case target.object < 0 && flags&unix.RENAME_EXCHANGE != 0:
		return unix.ENOENT
	}
	return 0
}

// suspectPath is suspect for the last component of a path.
func (c *call) suspectPath(path string) bool {
	_, last := splitPath(path)
	return c.suspect(last)
}

// lastOrDot is a last component for the kernel, "." for the directory itself.
func lastOrDot(last string) string {
	if last == "" {
		return "."
	}
	return last
}

// renameFast renames to a name that is suspect to no rule. Where the moving of directories is judged, it is for regular
// files alone.
func (c *call) renameFast(t twoPaths) (out outcome, slow bool) {
	p, errno := c.program(false)
	if errno != 0 {
		return failed(errno), false
	}
	fromDir, old := splitPath(t.from)
	toDir, target := splitPath(t.to)
	fromAt, toAt := p.from(t.start), p.from(t.end)
	from, _ := p.parent(fromAt, fromDir, 0)
	to, _ := p.parent(toAt, toDir, 0)
	oldName := p.Str(lastOrDot(old))
	if c.s.config.Judge.Moves() {
		at, _ := p.Buffer(statxSize)
		p.Call("look at", t.from, unix.SYS_STATX, from, oldName, ns.Int(unix.AT_SYMLINK_NOFOLLOW), ns.Int(unix.STATX_TYPE), at)
		p.Expect("find", "a regular file", at, statxGID, unix.S_IFMT<<32, unix.S_IFREG<<32, unix.ELOOP)
	}
	after := p.Len()
	p.Call("rename", t.from, unix.SYS_RENAMEAT2, from, oldName, to, p.Str(lastOrDot(target)), ns.Int(t.flags))
	p.finish()
	r, errno := p.do()
	switch {
	case errno != 0:
		return failed(errno), false
	case r.Failed >= 0 && r.Failed < after && mayBeCallers(r.Errno):
		return out, true
	}
	return c.made(&r), false
}

// judgeRename judges what a rename does: the new name, the old one where something takes its place, and for a directory
// all that it holds.
func (c *call) judgeRename(old, target place, flags uint32) (out outcome, denied bool) {
	exchange := flags&unix.RENAME_EXCHANGE != 0
	if c.s.config.Changes != nil {
		if out, denied := c.judgeRenaming(old, target, flags); denied {
			return out, true
		}
		return c.judgeMoves(old, target, exchange)
	}
	named := []place{target}
	if exchange || flags&unix.RENAME_WHITEOUT != 0 {
		named = append(named, old)
	}
	for _, at := range named {
		why, denied, errno := c.mayCreate(at)
		switch {
		case errno != 0:
			return failed(errno), true
		case denied && (c.isMount(old) || c.isMount(target)):
			return c.refuse(unix.EBUSY, c.named(at), why), true // the kernel says so of what is denied and was there at the start
		case denied:
			return c.refuse(unix.EROFS, c.named(at), why), true
		}
	}
	return c.judgeMoves(old, target, exchange)
}

// judgeMoves is judgeMove, for both ways where two objects change places.
func (c *call) judgeMoves(old, target place, exchange bool) (out outcome, denied bool) {
	if out, denied := c.judgeMove(old, target); denied || !exchange {
		return out, denied
	}
	return c.judgeMove(target, old)
}

// judgeMove judges that an object is moved from one place to another.
func (c *call) judgeMove(from, to place) (out outcome, denied bool) {
	judge := c.s.config.Judge
	if !judge.Moves() && !judge.Reads() {
		return out, false
	}
	i, errno := c.look(from.object)
	before, errno2 := c.location(from)
	after, errno3 := c.location(to)
	if errno != 0 || errno2 != 0 || errno3 != 0 {
		return failed(unix.EIO), true
	}
	if i.kind() == unix.S_IFDIR && judge.Moves() {
		if why, denied := judge.Move(before, after); denied {
			return c.refuse(c.moveErrno(from), after, why), true
		}
	}
	if i.kind() == unix.S_IFLNK && !c.isMount(from) && !c.isMount(to) { // else the kernel refuses it (EBUSY)
		if out, denied := c.judgeRedirect(to); denied {
			return out, true
		}
	}
	if judge.Reads() {
		if why, denied := judge.Leave(before); denied {
			return c.refuse(unix.EACCES, before, why), true
		}
	}
	return out, false
}

// moveErrno is the error of a move that is refused: the kernel's own where it would refuse it as well, else what makes
// programs copy.
func (c *call) moveErrno(from place) syscall.Errno {
	if fs, errno := c.fileSystem(from.dir); errno == 0 && fs.Flags&stReadOnly != 0 {
		return unix.EROFS
	}
	if c.isMount(from) {
		return unix.EBUSY
	}
	return unix.EXDEV
}

// stReadOnly is ST_RDONLY of statfs(2): a mount that is read-only, or its file system is.
const stReadOnly = 1

// isMount tells whether a mount lies on the object at a place (statx(2), STATX_ATTR_MOUNT_ROOT).
func (c *call) isMount(at place) bool {
	if at.object < 0 {
		return false
	}
	i, errno := c.look(at.object)
	return errno == 0 && i.Attributes_mask&i.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// renameAt renames between two places that were judged.
func (c *call) renameAt(old, target place, flags uint32) outcome {
	p, errno := c.program(false)
	if errno != 0 {
		return failed(errno)
	}
	from, to := p.from(origin{old.dir}), p.from(origin{target.dir})
	p.Call("rename", old.last, unix.SYS_RENAMEAT2, from, p.Str(old.last), to, p.Str(target.last), ns.Int(flags))
	p.finish()
	r, errno := p.do()
	if errno != 0 {
		return failed(errno)
	}
	return c.made(&r)
}
