package broker

import (
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// stallLimit is how long one name may take to be looked up where that may take somebody else. The caller waits as long, and
// as long again for the kernel's own lookup: it is what a server that does not answer costs anybody.
const stallLimit = 2 * time.Second

// walkTo finds what a path is about name by name, where the kernel could not do it in one go: names that are missing on the
// way, links that mean the caller, parts that are not at hand.
func (c *call) walkTo(origin int, absolute bool, text string, w wanted) (where spot, ok bool) {
	root, errno := c.ownRoot()
	if errno != 0 {
		return where, false
	}
	cur := origin
	if absolute {
		cur = root
	}
	for {
		name, rest := nextComponent(text)
		final := rest == ""
		if final && name == "" {
			return c.there(cur)
		}
		last := final && !strings.HasSuffix(text, "/")
		if target, is := c.callersOwn(cur, name); is {
			if c.tooManyLinks() {
				return where, false
			}
			if text = target; !final {
				text += "/" + rest
			}
			continue
		}
		object, errno := c.stepTo(cur, name, root)
		switch errno {
		case 0:
		case unix.ENOENT, unix.EACCES:
			return c.missing(cur, name, rest, errno)
		case unix.ENOTDIR, unix.ENAMETOOLONG, unix.ELOOP:
			return where, false // what the call says, too
		default:
			c.unseen = true
			return where, false
		}
		i, errno := c.look(object)
		if errno != 0 {
			return where, false
		}
		if i.kind() != unix.S_IFLNK || last && !w.follow || final && w.name {
			if final {
				return c.there(object)
			}
			cur, text = object, rest
			continue
		}
		target, ok := c.targetOf(object)
		if !ok || c.tooManyLinks() {
			return where, false
		}
		if target[0] == '/' {
			cur = root
		}
		if text = target; !last {
			text += "/" + rest
		}
	}
}

// callersOwn is what the names in the root of a procfs that mean the caller stand for.
func (c *call) callersOwn(dir int, name string) (string, bool) {
	if name != "self" && name != "thread-self" || !c.isProcRoot(dir) {
		return "", false
	}
	if c.readStatus() != 0 {
		return "", false
	}
	process, thread := c.status.inner, c.status.innerThread
	if _, errno := c.openHeld(dir, "self", unix.O_PATH|unix.O_CLOEXEC, 0); errno == 0 {
		process, thread = c.status.tgid, c.tid // this process is in there, too: it is the host's
	}
	if name == "self" {
		return strconv.Itoa(process), process != 0
	}
	return strconv.Itoa(process) + "/task/" + strconv.Itoa(thread), process != 0
}

// targetOf reads a symbolic link. One in /proc that leads to an object says where that is; what is nowhere is in no rule.
func (c *call) targetOf(link int) (string, bool) {
	target, err := readLink(link, "")
	if err != nil || target == "" {
		return "", false
	}
	fs, errno := c.fileSystem(link)
	if errno != 0 || fs.Flags&stNoSymfollow != 0 {
		return "", false
	}
	if fs.Type == unix.PROC_SUPER_MAGIC && (strings.HasSuffix(target, " (deleted)") || strings.Contains(target, ":[")) {
		return "", false
	}
	return target, true
}

// stepTo opens one name in a directory, not following a link. Above the root lies nothing.
func (c *call) stepTo(dir int, name string, root int) (int, syscall.Errno) {
	if name == ".." && c.sameObject(dir, root) {
		return dir, 0
	}
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, errno := c.openHeld(dir, name, flags, resolveCached)
	if errno != unix.EAGAIN {
		return fd, errno
	}
	i, errno := c.look(dir)
	if errno != 0 {
		return -1, errno
	}
	if m, ok := c.s.observer.mounts.find(c, i.Mnt_id); !ok || m.remote {
		return c.stepAway(dir, name)
	}
	return c.openHeld(dir, name, flags, 0)
}

// stepAway is stepTo where the lookup may wait for somebody else: in the hand, which can be ended.
func (c *call) stepAway(dir int, name string) (int, syscall.Errno) {
	p, errno := c.program(false)
	if errno != 0 {
		return -1, errno
	}
	fd := p.Call("open", name, unix.SYS_OPENAT, p.from(origin{dir}), p.Str(name), lookFlags, zero)
	p.SendFiles(0, name, fd)
	r, errno := p.doWithin(stallLimit)
	if errno != 0 {
		return -1, errno
	}
	fds := c.own(&r, 1)
	if r.Failed >= 0 {
		return -1, r.Errno
	}
	return fds[0], c.whole(fds[0])
}

// errStalled says that a hand was ended because it took too long.
var errStalled = errors.New("a lookup took too long")

// doWithin is do for a program that is given up after a time.
func (p *program) doWithin(limit time.Duration) (ns.HandResult, syscall.Errno) {
	if !p.c.waits() {
		return ns.HandResult{}, unix.EINTR
	}
	p.c.s.pool.handOn(p.c.w, true)
	var ended atomic.Bool
	done := make(chan struct{})
	timer := time.AfterFunc(limit, func() {
		defer close(done)
		ended.Store(true)
		_ = p.hand.Kill() // one that has ended needs no killing
	})
	r, err := p.hand.Do()
	if !timer.Stop() {
		<-done
	}
	if err != nil || ended.Load() {
		p.c.w.dropHand()
		if err == nil {
			r.Close()
		}
		return ns.HandResult{}, p.c.broken(errors.Join(errStalled, err))
	}
	return r, 0
}
