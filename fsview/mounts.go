package fsview

import (
	"errors"
	"path"
	"strings"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// Mount is one mount of the host, as mountinfo lists it (proc_pid_mountinfo(5)).
type Mount struct {
	ID, Parent int
	// Dev is the device of the file system, the major number in the upper 32 bits. It only serves to compare mounts:
	// on btrfs and overlayfs the objects themselves report other numbers.
	Dev   uint64
	Root  string // what is shown: a path within the file system; not absolute for what is no part of a tree
	Point string // absolute; where it is shown
}

// errNoRoot says that what `/` shows is not in the list of mounts.
var errNoRoot = errors.New("the list of mounts (mountinfo) does not say what lies at the root")

// mountTable knows the mounts that can be reached by a path, and where two of them show the same objects.
type mountTable struct {
	at     map[string]*Mount   // by mount point
	shared map[uint64][]*Mount // by device, where what one mount shows covers what another one does
}

// newMountTable is nil when no object shows at two places, which is the usual case and costs one look at each mount.
func newMountTable(mounts []Mount) (*mountTable, error) {
	devices := overlapping(mounts)
	if len(devices) == 0 {
		return nil, nil
	}
	root, children := (*Mount)(nil), make(map[mountPlace]*Mount, len(mounts))
	ids := make(map[int]bool, len(mounts))
	for i := range mounts {
		ids[mounts[i].ID] = true
	}
	for i := range mounts {
		m := &mounts[i]
		if m.Point == "/" && (!ids[m.Parent] || m.Parent == m.ID) {
			root = m
			continue
		}
		children[mountPlace{m.Parent, m.Point}] = m
	}
	if root == nil {
		return nil, errNoRoot
	}
	t := &mountTable{at: make(map[string]*Mount, len(mounts)), shared: make(map[uint64][]*Mount, len(devices))}
	for i := range mounts {
		m := &mounts[i]
		if reached(root, children, m.Point) != m {
			continue // covered by a later one, there or above
		}
		t.at[m.Point] = m
		if devices[m.Dev] && strings.HasPrefix(m.Root, "/") {
			t.shared[m.Dev] = append(t.shared[m.Dev], m)
		}
	}
	return t, nil
}

// mountPlace is where a mount hangs: the kernel looks it up by the mount around it and the place in that.
type mountPlace struct {
	parent int
	point  string
}

// overlapping gives the devices of which one mount shows what another one shows too.
func overlapping(mounts []Mount) map[uint64]bool {
	count := make(map[uint64]int, len(mounts))
	twice := false
	for i := range mounts {
		count[mounts[i].Dev]++
		twice = twice || count[mounts[i].Dev] > 1
	}
	if !twice {
		return nil
	}
	type part struct {
		dev  uint64
		root string
	}
	roots := make(map[part]int, len(mounts))
	for i := range mounts {
		if m := &mounts[i]; count[m.Dev] > 1 && strings.HasPrefix(m.Root, "/") {
			roots[part{m.Dev, m.Root}]++
		}
	}
	var devices map[uint64]bool
	for p, n := range roots {
		for dir := p.root; n < 2 && dir != "/"; {
			dir = path.Dir(dir)
			n += roots[part{p.dev, dir}]
		}
		if n > 1 {
			if devices == nil {
				devices = make(map[uint64]bool, 1)
			}
			devices[p.dev] = true
		}
	}
	return devices
}

// reached is the mount that a path without links ends on, as the kernel finds it (path_resolution(7)): at each name the
// mount that hangs there is entered, and the one on top of that.
func reached(root *Mount, children map[mountPlace]*Mount, p string) *Mount {
	cur := root
	for end := 1; end < len(p); {
		next := strings.IndexByte(p[end:], '/')
		if next < 0 {
			end = len(p)
		} else {
			end += next
		}
		for over := children[mountPlace{cur.ID, p[:end]}]; over != nil; over = children[mountPlace{cur.ID, p[:end]}] {
			cur = over
		}
		end++
	}
	return cur
}

// locate gives the mount that a location lies on and its path within that mount's file system.
func (t *mountTable) locate(p string) (*Mount, string) {
	for at := p; ; at = path.Dir(at) {
		if m := t.at[at]; m != nil {
			return m, beneath(m.Root, tail(at, p))
		}
	}
}

// tail is what follows base in p, which base covers: empty, or it starts with a slash.
func tail(base, p string) string {
	if base == "/" {
		base = ""
	}
	return strings.TrimSuffix(p[len(base):], "/")
}

// beneath appends a tail to a path.
func beneath(base, tail string) string {
	switch {
	case tail == "":
		return base
	case base == "/":
		return tail
	default:
		return base + tail
	}
}

// wholes gives the other paths at which the object at a location shows.
func (t *mountTable) wholes(p string) []string {
	list, _ := t.others(p)
	return list
}

// others gives the other paths at which the object at a location shows (wholes), and those at which something in it shows
// without it (parts): mounts of directories or files in it.
//
// Objects keep their own paths: what a mount shows where it would be anyway is no other path. A location that shows the
// very tree it lies in, as a mount of a whole file system somewhere within it does, is itself the other path: nothing is
// given then.
func (t *mountTable) others(p string) (wholes, parts []string) {
	m, inner := t.locate(p)
	shared := t.shared[m.Dev]
	if len(shared) < 2 || t.showsSurroundings(p, m, inner) {
		return nil, nil
	}
	for _, o := range shared {
		switch {
		case o == m:
		case policy.Covers(o.Root, inner):
			if at := beneath(o.Point, tail(o.Root, inner)); t.shows(o, at) {
				wholes = append(wholes, at)
			}
		case policy.Covers(inner, o.Root):
			if o.Point != beneath(p, tail(inner, o.Root)) {
				parts = append(parts, o.Point)
			}
		}
	}
	return wholes, parts
}

// shows reports whether a path ends on this mount, not on one that covers it there.
func (t *mountTable) shows(m *Mount, p string) bool {
	at, _ := t.locate(p)
	return at == m
}

// showsSurroundings reports whether a directory above p lies in what p shows.
func (t *mountTable) showsSurroundings(p string, m *Mount, inner string) bool {
	for at := m; at.Point != "/"; {
		var above string
		at, above = t.locate(path.Dir(at.Point))
		if at.Dev == m.Dev && policy.Covers(inner, above) {
			return true
		}
	}
	return false
}
