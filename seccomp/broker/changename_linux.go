package broker

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
)

// What makes a name needs no look at what is there: the directory is found and judged with the name, and the hand's own call says
// whether there is something already. That saves the way to the hand and back that such a look takes, since the kernel has no name
// at hand that does not exist.

// nameHere is a name in a directory that was found here, whether or not anything has it.
type nameHere struct {
	dir  int
	last string // with the slashes behind it
	at   string // its location
}

// nameHere finds the directory of a path's last component, where this process may and nothing is special about it.
func (c *call) nameHere(o origin, path string) (n nameHere, ok bool) {
	dir, last := splitPath(path)
	if c.walks || !isName(last) {
		return n, false
	}
	parent, errno := c.parentHere(o, dir, 0)
	if errno != 0 {
		return n, false
	}
	m, errno := c.mounted(parent)
	if errno != 0 || !m.known || m.proc {
		return n, false
	}
	where, err := c.where(parent)
	if err != nil || where == "" || where[0] != '/' || strings.HasSuffix(where, " (deleted)") {
		return n, false
	}
	return nameHere{parent, last, joinLocation(where, nameOf(last))}, true
}

// allows tells whether the judge refuses none of some changes at a location. What it refuses is looked at more closely.
func (c *call) allows(location string, list ...fsview.Access) bool {
	for _, a := range list {
		if _, errno := c.s.config.Changes.Change(location, a); errno != 0 {
			return false
		}
	}
	return true
}

// openChange opens what is there, or makes a regular file, in one go. What takes more is left to openSlow.
func (c *call) openChange(o origin, path string, how openHow) (out outcome, slow bool) {
	if how.resolve != 0 || strings.HasSuffix(path, "/") || c.s.config.Judge.Reads() {
		return out, true
	}
	name, ok := c.nameHere(o, path)
	if !ok {
		return out, true
	}
	object, errno := c.openHere(name.dir, name.last, unix.O_NOFOLLOW, 0)
	if errno == 0 {
		return c.openFound(place{dir: name.dir, last: name.last, object: object}, how)
	}
	if errno != unix.ENOENT && errno != unix.EAGAIN || !how.creates() || how.flags&unix.O_DIRECTORY != 0 ||
		!c.allows(name.at, fsview.AccessCreate, fsview.AccessWrite) {
		return out, true
	}
	return c.create(origin{name.dir}, "", name.last, how)
}

// openFound opens what was found, unless it is a link.
func (c *call) openFound(at place, how openHow) (out outcome, slow bool) {
	i, errno := c.look(at.object)
	switch {
	case errno != 0:
		return failed(errno), false
	case i.kind() == unix.S_IFLNK, how.creates() && how.flags&unix.O_EXCL != 0:
		return out, true
	}
	return c.openObject(at, &i, how), false
}

// makeHere makes a name in one go, where the judge allows it.
func (c *call) makeHere(o origin, path string, m maker) (out outcome, slow bool) {
	if c.s.config.Changes == nil {
		return out, true
	}
	name, ok := c.nameHere(o, path)
	if !ok || !c.allows(name.at, fsview.AccessCreate) {
		return out, true
	}
	if m.link && c.judgesLinks() {
		if _, denied := c.s.config.Judge.Redirect(name.at); denied {
			return out, true
		}
	}
	p, errno := c.program(m.umask)
	if errno != 0 {
		return failed(errno), false
	}
	m.add(p, p.from(origin{name.dir}), p.Str(name.last))
	return p.answered(), false
}

// renameTarget finds what a rename leads to. Where that is allowed whether or not something is there, nobody looks.
func (c *call) renameTarget(t twoPaths, old place) (place, syscall.Errno) {
	if c.s.config.Changes == nil || t.flags != 0 || old.object < 0 {
		return c.locate(t.end, t.to, 0)
	}
	name, ok := c.nameHere(t.end, t.to)
	if !ok || !c.allows(name.at, fsview.AccessCreate, fsview.AccessRemove) {
		return c.locate(t.end, t.to, 0)
	}
	object, errno := c.openHere(name.dir, nameOf(name.last), unix.O_NOFOLLOW, 0)
	switch errno {
	case 0:
	case unix.ENOENT, unix.EAGAIN:
		object, errno = -1, unix.ENOENT
	default:
		return c.locate(t.end, t.to, 0)
	}
	return place{dir: name.dir, last: name.last, object: object, errno: errno}, 0
}

// judgeRenaming judges both names of a rename: what is taken away, what is made, what is replaced.
func (c *call) judgeRenaming(old, target place, flags uint32) (out outcome, denied bool) {
	asked := []struct {
		at     place
		a      fsview.Access
		counts bool
	}{
		{old, fsview.AccessRemove, true},
		{target, fsview.AccessRemove, target.object >= 0},
		{target, fsview.AccessCreate, true},
		{old, fsview.AccessCreate, flags&(unix.RENAME_EXCHANGE|unix.RENAME_WHITEOUT) != 0},
	}
	for _, q := range asked {
		if !q.counts {
			continue
		}
		if out, denied := c.judgeName(q.at, q.a); denied {
			return out, true
		}
	}
	return out, false
}
