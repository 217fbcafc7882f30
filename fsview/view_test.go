package fsview

import (
	"fmt"
	"path"
	"strings"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// view is what a command would see: an interpreter of plans over a fakeTree.
type view struct {
	tree         *fakeTree
	rootWritable bool
	mounts       map[string]Step
	memory       map[string]bool // what Make lists created, by absolute path: is it a directory
	pinned       map[string]bool
}

// apply runs a plan the way an executor does and refuses every step that could not be executed.
func apply(tree *fakeTree, plan *Plan) (*view, error) {
	v := &view{tree: tree, rootWritable: plan.RootWritable, mounts: map[string]Step{}, memory: map[string]bool{},
		pinned: map[string]bool{}}
	depth := 1 << 30
	last := ""
	for _, s := range plan.Steps {
		if err := v.verify(s); err != nil {
			return nil, err
		}
		if s.Kind == Pin {
			d := strings.Count(s.Path, "/")
			switch {
			case d > depth:
				return nil, fmt.Errorf("pin %s after a shallower one", s.Path)
			case v.pinned[s.Path]:
				return nil, fmt.Errorf("pin %s twice", s.Path)
			case last != "":
				return nil, fmt.Errorf("pin %s after other steps", s.Path)
			}
			depth, v.pinned[s.Path] = d, true
			continue
		}
		key := strings.ReplaceAll(s.Path, "/", "\x00")
		if key <= last {
			return nil, fmt.Errorf("step %s %s is not in path order", s.Kind, s.Path)
		}
		last = key
		if err := v.attach(s); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// verify compares a step's identity with the tree.
func (v *view) verify(s Step) error {
	at := s.Path
	if s.Source != "" {
		at = s.Source
	}
	o := v.tree.objects[at]
	switch {
	case o == nil:
		return fmt.Errorf("%s %s: there is no such object", s.Kind, at)
	case s.ID != Identity{Dev: 1, Ino: o.ino, Type: o.fileType()}:
		return fmt.Errorf("%s %s: identity %+v is wrong", s.Kind, at, s.ID)
	case s.Dir != (o.kind == 'd'):
		return fmt.Errorf("%s %s: Dir is wrong", s.Kind, at)
	case s.Why == "":
		return fmt.Errorf("%s %s: no reason", s.Kind, at)
	}
	return nil
}

func (v *view) attach(s Step) error {
	for i, rel := range s.Make {
		full := s.HiddenBy + "/" + rel
		parent := v.at(path.Dir(full))
		if parent.kind != inMemory || !parent.dir {
			return fmt.Errorf("%s %s: cannot create %s", s.Kind, s.Path, full)
		}
		if _, have := v.memory[full]; have {
			return fmt.Errorf("%s %s: %s is created twice", s.Kind, s.Path, full)
		}
		v.memory[full] = s.Dir || i < len(s.Make)-1
	}
	reveal := s.Kind == Reveal || s.Kind == RevealWritable
	inside := reveal || ((s.Kind == Mask || s.Kind == Supplied) && s.HiddenBy != "")
	if inside != (s.HiddenBy != "") || reveal != (s.Source != "") {
		return fmt.Errorf("%s %s: HiddenBy %q Source %q", s.Kind, s.Path, s.HiddenBy, s.Source)
	}
	point := v.at(s.Path)
	switch {
	case point.kind == nothing:
		return fmt.Errorf("%s %s: no mount point", s.Kind, s.Path)
	case point.dir != s.Dir:
		return fmt.Errorf("%s %s: the mount point is of the other kind", s.Kind, s.Path)
	case inside != (point.kind == inMemory):
		return fmt.Errorf("%s %s: mount point in memory: %v", s.Kind, s.Path, point.kind == inMemory)
	}
	v.mounts[s.Path] = s
	return nil
}

// What a path shows.
const (
	nothing  = iota // ENOENT
	inMemory        // an object of the sandbox's own
	masked          // the empty file of HideFile, or that of a Mask or Supplied
	onHost          // an object of the host
)

type shown struct {
	kind     int
	source   string // when onHost: the host's path
	dir      bool
	writable bool   // by the mount it lies on
	mount    string // path of that mount
	fake     string // what a mask or supplied file shows
}

// at looks a path up, through the deepest mount that covers it.
func (v *view) at(p string) shown {
	top := p
	for top != "/" {
		if _, ok := v.mounts[top]; ok {
			break
		}
		top = path.Dir(top)
	}
	m, ok := v.mounts[top]
	rel := strings.TrimPrefix(strings.TrimPrefix(p, top), "/")
	out := shown{mount: top}
	switch {
	case !ok:
		return v.host(out, p, v.rootWritable)
	case m.Kind == HideDir || m.Kind == EmptyDir:
		isDir, made := v.memory[p]
		if rel == "" || made {
			out.kind, out.dir, out.writable = inMemory, rel == "" || isDir, m.Kind == HideDir
		}
		return out
	case m.Kind == HideFile, m.Kind == Mask, m.Kind == Supplied:
		if rel == "" {
			out.kind, out.fake = masked, string(m.Content)
		}
		return out
	case m.Kind == Reveal || m.Kind == RevealWritable:
		return v.host(out, path.Join(m.Source, rel), m.Kind == RevealWritable)
	default:
		return v.host(out, p, m.Kind == Writable)
	}
}

func (v *view) host(out shown, source string, writable bool) shown {
	if o := v.tree.objects[source]; o != nil {
		out.kind, out.source, out.dir, out.writable = onHost, source, o.kind == 'd', writable
	}
	return out
}

// checkPinned finds mounts and pins that a command could carry away by renaming a directory above them, and mounts on
// the very mount that shows them where a pin would have no effect.
func (v *view) checkPinned() error {
	var places []string
	for p := range v.mounts {
		if inKernel(p) {
			continue // replaced or made read-only as a whole
		}
		places = append(places, path.Dir(p))
	}
	for p := range v.pinned {
		places = append(places, p)
	}
	for _, p := range places {
		for ; p != "/"; p = path.Dir(p) {
			if _, ok := v.mounts[p]; ok {
				break
			}
			s := v.at(p)
			if s.kind != onHost || !s.writable {
				break
			}
			// What lies on a writable root mount is shown by it: a pin there crosses a mount, unless it is a link.
			if s.mount == "/" && v.tree.objects[p].kind == 'd' {
				return fmt.Errorf("%s holds something protected but has no clone of its own", p)
			}
			if !v.pinned[p] {
				return fmt.Errorf("%s holds something protected but can be renamed", p)
			}
		}
	}
	return nil
}

// movable reports whether a command could rename or remove the object at p.
func (v *view) movable(p string) bool {
	if _, ok := v.mounts[p]; ok || v.pinned[p] {
		return false
	}
	s := v.at(path.Dir(p))
	return s.kind == onHost && s.writable
}

func inKernel(p string) bool {
	return policy.Covers("/proc", p) || policy.Covers("/dev", p) || policy.Covers("/sys", p)
}
