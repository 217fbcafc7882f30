package fsview

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"sort"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// fakeObject is one object of a fakeTree.
type fakeObject struct {
	kind   byte // d, f, l, p (FIFO)
	target string
	text   string // content of a file
	uid    int
	mode   uint32 // permission bits for uid, of which only the owner's are looked at
	links  uint64
	ino    uint64
	err    error // what looking at it answers
	rofs   bool
	nocase bool // a directory that ignores letter case

	dev   uint64 // the file system it lies in, once the tree has mounts
	inner string // its path in that
}

// fakeTree is a disk in memory, seen by user uid.
type fakeTree struct {
	objects map[string]*fakeObject
	uid     int
	missing string       // the first name that the last real did not find
	up      bool         // the last real ended at a file, and would have gone up from there
	lists   atomic.Int64 // how many directories were listed, from two goroutines
	stats   int

	disks  map[uint64]map[string]*fakeObject // file systems whole, once the tree has mounts
	mounts []Mount
	on     map[string]int // the mount that a path lies on
}

// attach shows a part of a file system at a point, over what is there. Disk 1 is the tree as it was before.
func (f *fakeTree) attach(dev uint64, root, point string) {
	if f.disks == nil {
		second := map[string]*fakeObject{}
		for p, kind := range map[string]byte{"/": 'd', "/a": 'd', "/a/b": 'f', "/.git": 'd', "/.git/HEAD": 'f', "/.git/hooks": 'd', "/c": 'f'} {
			second[p] = &fakeObject{kind: kind, uid: 1000, mode: 0o755, links: 1, ino: uint64(10000 + len(second))}
		}
		f.disks, f.on = map[uint64]map[string]*fakeObject{1: maps.Clone(f.objects), 2: second}, map[string]int{}
		for dev, disk := range f.disks {
			for p, o := range disk {
				o.dev, o.inner = dev, p
			}
		}
		f.mounts = []Mount{{ID: 10, Parent: 1, Dev: 1, Root: "/", Point: "/"}}
		for p := range f.objects {
			f.on[p] = 10
		}
	}
	m := Mount{ID: 10 + len(f.mounts), Parent: f.on[point], Dev: dev, Root: root, Point: point}
	for p := range f.objects {
		if policy.Covers(point, p) {
			delete(f.objects, p)
		}
	}
	for inner, o := range f.disks[dev] {
		if policy.Covers(root, inner) {
			p := path.Join(point, strings.TrimPrefix(inner, root))
			f.objects[p], f.on[p] = o, m.ID
		}
	}
	f.mounts = append(f.mounts, m)
}

// bind shows the object at a path, without what is mounted in it, at another one.
func (f *fakeTree) bind(from, to string) {
	if f.disks == nil {
		f.attach(1, from, to)
		return
	}
	f.attach(f.objects[from].dev, f.objects[from].inner, to)
}

// newFakeTree makes a tree from lines "kind path [target] [option...]", where the kind m binds target on path. Missing directories are made. Options are
// uid=N, mode=OCTAL, links=N, text=CONTENT, rofs, nocase, and an errno: eio, estale, eacces.
func newFakeTree(t testing.TB, lines string) *fakeTree {
	t.Helper()
	tree := &fakeTree{objects: map[string]*fakeObject{"/": {kind: 'd', mode: 0o755, ino: 1}}, uid: 1000}
	for _, line := range strings.FieldsFunc(lines, func(r rune) bool { return r == '\n' || r == ';' }) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		if words[0] == "m" {
			tree.bind(words[2], words[1])
			continue
		}
		o := tree.add(words[1], words[0][0])
		words = words[2:]
		if o.kind == 'l' {
			o.target, words = words[0], words[1:]
		}
		for _, w := range words {
			key, value, _ := strings.Cut(w, "=")
			switch key {
			case "uid":
				fmt.Sscan(value, &o.uid)
			case "mode":
				fmt.Sscanf(value, "%o", &o.mode)
			case "links":
				fmt.Sscan(value, &o.links)
			case "text": // ~ is a space, | a line feed
				o.text = strings.NewReplacer("~", " ", "|", "\n").Replace(value)
			case "rofs":
				o.rofs = true
			case "nocase":
				o.nocase = true
			case "eio":
				o.err = syscall.EIO
			case "estale":
				o.err = syscall.ESTALE
			case "eacces":
				o.err = syscall.EACCES
			default:
				t.Fatalf("unknown option %q", w)
			}
		}
	}
	return tree
}

func (f *fakeTree) add(p string, kind byte) *fakeObject {
	if parent := path.Dir(p); f.objects[parent] == nil {
		f.add(parent, 'd')
	}
	o := &fakeObject{kind: kind, uid: 1000, mode: 0o755, links: 1, ino: uint64(len(f.objects) + 1)}
	if len(strings.Split(p, "/")) == 2 {
		o.uid = 0 // top-level directories are root's
	}
	f.objects[p] = o
	return o
}

func (o *fakeObject) fileType() fs.FileMode {
	return map[byte]fs.FileMode{'d': fs.ModeDir, 'f': 0, 'l': fs.ModeSymlink, 'p': fs.ModeNamedPipe}[o.kind]
}

// look finds the object at p by walking from the root, as the kernel does, without following links.
func (f *fakeTree) look(p string) (*fakeObject, error) {
	cur := f.objects["/"]
	at := "/"
	for _, name := range strings.Split(strings.Trim(p, "/"), "/") {
		if name == "" {
			break
		}
		if len(name) > maxName {
			return nil, syscall.ENAMETOOLONG
		}
		if cur.kind != 'd' {
			return nil, syscall.ENOTDIR
		}
		if err := f.may(cur, 0o1); err != nil {
			return nil, err
		}
		at = join(at, name)
		if cur = f.objects[at]; cur == nil {
			return nil, syscall.ENOENT
		}
		if cur.err != nil {
			return nil, cur.err
		}
	}
	return cur, nil
}

func (f *fakeTree) may(o *fakeObject, bit uint32) error {
	shift := 0
	if o.uid == f.uid {
		shift = 6
	}
	if f.uid != 0 && o.mode>>shift&bit == 0 {
		return syscall.EACCES
	}
	return nil
}

func (f *fakeTree) Lstat(p string) (Info, error) {
	f.stats++
	o, err := f.look(p)
	if err != nil {
		return Info{}, err
	}
	return Info{ID: Identity{Dev: 1, Ino: o.ino, Type: o.fileType()}, UID: o.uid, Link: o.links}, nil
}

func (f *fakeTree) Readlink(p string) (string, error) {
	o, err := f.look(p)
	if err == nil && o.kind != 'l' {
		err = syscall.EINVAL
	}
	if err != nil {
		return "", err
	}
	return o.target, nil
}

func (f *fakeTree) ReadDir(p string) ([]DirEntry, error) {
	f.lists.Add(1)
	o, err := f.look(p)
	if err != nil {
		return nil, err
	}
	if o.kind != 'd' {
		return nil, syscall.ENOTDIR
	}
	if err := f.may(o, 0o4); err != nil {
		return nil, err
	}
	var list []DirEntry
	for child, co := range f.objects {
		if child != "/" && path.Dir(child) == p {
			list = append(list, DirEntry{Name: path.Base(child), Type: co.fileType()})
		}
	}
	return list, nil
}

func (f *fakeTree) ReadFile(p string, limit int) ([]byte, error) {
	o, err := f.look(p)
	switch {
	case err != nil:
		return nil, err
	case o.kind != 'f':
		return nil, syscall.EINVAL
	}
	if err := f.may(o, 0o4); err != nil {
		return nil, err
	}
	return []byte(o.text[:min(len(o.text), limit)]), nil
}

func (f *fakeTree) CanCreate(p string) error {
	o, err := f.look(p)
	if err != nil {
		return err
	}
	if o.rofs {
		return syscall.EROFS
	}
	if err := f.may(o, 0o2); err != nil {
		return err
	}
	return f.may(o, 0o1)
}

func (f *fakeTree) IgnoresCase(p string) bool {
	f.stats++
	o, err := f.look(p)
	return err != nil || o.nocase
}

func (f *fakeTree) CanSearch(p string) error {
	o, err := f.look(p)
	if err != nil {
		return err
	}
	return f.may(o, 0o1)
}

// paths lists every object in path order.
func (f *fakeTree) paths() []string {
	list := make([]string, 0, len(f.objects))
	for p := range f.objects {
		list = append(list, p)
	}
	sort.Strings(list)
	return list
}
