package fsview

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// sourceOf appends the copy of what a ReadOnly step puts on itself; fd is its place.
//
// The kernel looks at every mount on the one it copies from, so that ten thousand denies in a write root would take the
// square of that. The object is therefore copied from the tree beneath the write root, on which next to nothing is
// mounted: the root's own place leads there. It is proven there as well.
func (c *compiler) sourceOf(s Step, fd ns.Slot) ns.Slot {
	root, ok := c.directRoot(s.Path)
	if !ok {
		return c.copyTree(s.Path, fd)
	}
	if !placesByOpenat2() {
		return c.copyTree(s.Path, fd)
	}
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	rel := strings.TrimPrefix(s.Path[len(root):], "/")
	beneath := c.p.Call("open beneath the write root", s.Path, unix.SYS_OPENAT2, c.place[root].Arg(), c.p.Str(rel),
		ns.Pointer(c.p, how), ns.Int(unix.SizeofOpenHow))
	c.prove(s.Path, beneath, s.ID)
	tree := c.copyTree(s.Path, beneath)
	c.p.Close(beneath)
	return tree
}

// directRoot is the write root whose copy shows p, if no other step lies between and its place still leads beneath it.
func (c *compiler) directRoot(p string) (string, bool) {
	for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
		if kind, ok := c.attached[dir]; ok {
			_, placed := c.place[dir]
			return dir, kind == Writable && placed
		}
	}
	return "", false
}
