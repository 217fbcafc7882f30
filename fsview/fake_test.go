package fsview

import (
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"syscall"
	"testing"
)

// fakeObject is one object of a fakeTree.
type fakeObject struct {
	kind   byte // d, f, l, p (FIFO)
	target string
	uid    int
	mode   uint32 // permission bits for uid, of which only the owner's are looked at
	links  uint64
	ino    uint64
	err    error // what looking at it answers
	rofs   bool
}

// fakeTree is a disk in memory, seen by user uid.
type fakeTree struct {
	objects map[string]*fakeObject
	uid     int
	lists   int // how many directories were listed
	stats   int
}

// newFakeTree makes a tree from lines "kind path [target] [option...]". Missing directories are made. Options are
// uid=N, mode=OCTAL, links=N, rofs, and an errno: eio, estale, eacces.
func newFakeTree(t testing.TB, lines string) *fakeTree {
	t.Helper()
	tree := &fakeTree{objects: map[string]*fakeObject{"/": {kind: 'd', mode: 0o755, ino: 1}}, uid: 1000}
	for _, line := range strings.FieldsFunc(lines, func(r rune) bool { return r == '\n' || r == ';' }) {
		words := strings.Fields(line)
		if len(words) < 2 {
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
			case "rofs":
				o.rofs = true
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
	f.lists++
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
