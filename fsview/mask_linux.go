package fsview

import (
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// attachMask appends the making of a fake or supplied file and puts it over the real one (FS-58), or, inside a hidden
// directory, over an empty file made for it.
func (c *compiler) attachMask(s Step) {
	tree := c.fakeTree(s)
	if s.HiddenBy != "" {
		c.makePlace(s)
		c.put(s.Path, tree, c.open(s.Path))
		return
	}
	c.put(s.Path, tree, c.placeOf(s))
}

// fakeTree makes a file of the caller with a step's content, and gives a read-only mount of it. What is supplied is read by
// every user of the sandbox, as what it stands in for.
func (c *compiler) fakeTree(s Step) ns.Slot {
	mode := 0o600
	if s.Kind == Supplied {
		mode = 0o644
	}
	name := "f" + strconv.Itoa(c.faked)
	c.faked++
	fd := c.p.Call("make the fake of", s.Path, unix.SYS_OPENAT, c.yard.Arg(), c.p.Str(name),
		ns.Int(unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC), ns.Int(mode))
	if len(s.Content) > 0 {
		n := c.p.Call("write the fake of", s.Path, unix.SYS_WRITE, fd.Arg(), c.p.Bytes(s.Content), ns.Int(len(s.Content)))
		c.p.Store(c.statx, 0, n)
		c.p.Expect("write the fake of", s.Path, c.statx, 0, 1<<32-1, uint64(len(s.Content)), syscall.ENOSPC)
	}
	c.p.Close(fd)
	return c.sealedTree(s.Path, name)
}
