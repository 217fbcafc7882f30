package model

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Kind is the type of an object.
type Kind byte

// The kinds of object.
const (
	Dir  Kind = 'd'
	File Kind = 'f'
	Link Kind = 'l'
	Fifo Kind = 'p'
)

// Object is an inode.
type Object struct {
	Kind   Kind
	Mode   uint32 // permission bits; of no meaning for a link
	Text   string // a file's content
	Target string // a link's; absolute ones start at the root of the world
	Kids   map[string]*Object
}

func newDir() *Object { return &Object{Kind: Dir, Mode: 0o755, Kids: map[string]*Object{}} }

// Item is one object of a tree in a list: parents come before what lies in them.
type Item struct {
	Path   string
	Kind   Kind
	Text   string `json:",omitempty"`
	Target string `json:",omitempty"`
	Mode   uint32 `json:",omitempty"`
	Same   string `json:",omitempty"` // the path of an earlier file of which this is a further hard link
}

// Plant makes a tree from a list, in which the parent of each item comes earlier. The root is a directory.
func Plant(items []Item) *Object {
	root := newDir()
	for _, it := range items {
		o := &Object{Kind: it.Kind, Mode: it.Mode, Text: it.Text, Target: it.Target}
		switch {
		case it.Same != "":
			o = root.at(it.Same)
		case it.Kind == Dir:
			o = newDir()
		case it.Kind == File && o.Mode == 0:
			o.Mode = 0o644
		}
		root.at(path.Dir(it.Path)).Kids[path.Base(it.Path)] = o
	}
	return root
}

// at is the object at a location, or nil.
func (o *Object) at(loc string) *Object {
	for _, name := range split(loc) {
		if o == nil || o.Kind != Dir {
			return nil
		}
		o = o.Kids[name]
	}
	return o
}

func (o *Object) names() []string { return slices.Sorted(maps.Keys(o.Kids)) }

// each calls f for everything beneath o, which stands at loc, parents first and in the order of names.
func (o *Object) each(loc string, f func(loc string, o *Object)) {
	for _, name := range o.names() {
		at := join(loc, name)
		f(at, o.Kids[name])
		o.Kids[name].each(at, f)
	}
}

// List is the tree beneath the root as items, hard links not told apart.
func (o *Object) List() []Item {
	var items []Item
	o.each("/", func(loc string, o *Object) {
		items = append(items, Item{Path: loc, Kind: o.Kind, Text: o.Text, Target: o.Target, Mode: o.Mode})
	})
	return items
}

func split(loc string) []string {
	return strings.FieldsFunc(loc, func(r rune) bool { return r == '/' })
}

func join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// covers reports whether p is base or lies beneath it.
func covers(base, p string) bool {
	return base == "/" || base == p || strings.HasPrefix(p, base+"/")
}

func depth(loc string) int { return len(split(loc)) }

// upwards gives loc, its directory, and so on up to the root.
func upwards(loc string) []string {
	list := []string{loc}
	for loc != "/" {
		loc = path.Dir(loc)
		list = append(list, loc)
	}
	return list
}
