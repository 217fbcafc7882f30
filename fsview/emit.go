package fsview

import (
	"sort"
	"strings"
)

// region is the part of the tree that one step, or the root, has put in one state.
type region struct {
	top      *node // where the step stands
	hidden   bool
	writable bool
}

// emit walks the rules in path order and writes a step wherever the state changes.
func (b *builder) emit() error {
	s := state{}.enter(b.root)
	b.plan.RootWritable = s.writable()
	if b.plan.RootWritable {
		b.plan.Writable = append(b.plan.Writable, WritableRule{Path: "/", Dir: true})
		b.plan.WriteRoots = append(b.plan.WriteRoots, "/")
	}
	b.made = make(map[string]bool)
	if err := b.visitChildren(b.root, s, region{top: b.root, writable: s.writable()}); err != nil {
		return err
	}
	sort.SliceStable(b.pins, func(i, j int) bool {
		di, dj := strings.Count(b.pins[i].Path, "/"), strings.Count(b.pins[j].Path, "/")
		if di != dj {
			return di > dj
		}
		return b.pins[i].Path < b.pins[j].Path
	})
	b.plan.Steps = append(b.pins, b.plan.Steps...)
	return nil
}

func (b *builder) visitChildren(n *node, s state, reg region) error {
	for _, child := range n.sorted() {
		if err := b.visit(child, s, reg); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) visit(n *node, outer state, reg region) error {
	s := outer.enter(n)
	if n.kernelTree() {
		reg = region{top: n} // replaced or made read-only without a step of this plan
	}
	if s.writable() && outer.root == nil {
		b.plan.WriteRoots = append(b.plan.WriteRoots, n.path)
	}
	switch {
	case s.fake: // a file: nothing lies beneath it
		return b.step(n, s, reg)
	case s.hidden != reg.hidden || s.writable() != reg.writable:
		if err := b.step(n, s, reg); err != nil {
			return err
		}
		reg = region{top: n, hidden: s.hidden, writable: s.writable()}
	case reg.writable && reg.top == b.root && b.isDir(n):
		return b.visitTop(n, s)
	case reg.writable && n.held != nil:
		if err := b.pin(n, reg, n.held); err != nil {
			return err
		}
	}
	return b.visitChildren(n, s, reg)
}

// visitTop walks a top-level directory of a writable root. If something beneath it is protected, the directory gets a
// clone of its own, since pins have no effect on the mount that shows them (FS-41).
func (b *builder) visitTop(n *node, s state) error {
	at, pins := len(b.plan.Steps), len(b.pins)
	if err := b.visitChildren(n, s, region{top: n, writable: true}); err != nil {
		return err
	}
	if len(b.plan.Steps) == at && len(b.pins) == pins && n.held == nil {
		return nil
	}
	if err := b.learn(n); err != nil {
		return err
	}
	b.plan.Steps = append(b.plan.Steps, Step{})
	copy(b.plan.Steps[at+1:], b.plan.Steps[at:])
	b.plan.Steps[at] = Step{Kind: Writable, Path: n.path, ID: n.info.ID, Dir: true, Why: s.root.key + " (FS-41)"}
	return nil
}

// step writes the change of state at n, in the region around it.
func (b *builder) step(n *node, s state, reg region) error {
	if err := b.learn(n); err != nil {
		return err
	}
	out := Step{Path: n.path, ID: n.info.ID, Dir: n.info.IsDir(), Late: inKernelTree(n.path)}
	var cause *rule
	switch {
	case s.fake:
		if out.Kind, cause = Mask, n.ownFile(); n.fake == nil {
			out.Kind = Supplied
		}
		out.Content = cause.content
		if reg.hidden {
			b.makeWay(n, reg, &out)
		}
	case reg.hidden:
		cause = b.reveal(n, s, reg, &out)
	case s.hidden:
		cause = s.owner
		out.Kind = hiding(n, out.Dir)
	case s.writable():
		out.Kind, cause = Writable, s.root
	default:
		out.Kind, cause = ReadOnly, s.deny
		if n.info.passesReadOnly() {
			out.Kind, out.Unwritable = HideFile, cause.why()
			b.note("%s: a read-only mount does not keep a command from writing into the pipe or socket %q, which is hidden instead "+
				"(FS-31)", cause.label(), n.path)
		}
	}
	out.Why = cause.why()
	if cause.mandatory {
		b.mandatory++
	}
	if (out.Kind == HideFile || out.Kind == ReadOnly || out.Kind == Mask) && !out.Dir && n.info.Link > 1 {
		b.note("%q is protected (%s) but has %d hard links: its other names are not (FS-45)", n.path, cause.key, n.info.Link)
	}
	b.plan.Steps = append(b.plan.Steps, out)
	if out.Kind == Writable || out.Kind == RevealWritable {
		b.plan.Writable = append(b.plan.Writable, WritableRule{Path: n.path, Dir: out.Dir})
	}
	if reg.writable {
		return b.pin(n.parent, reg, cause)
	}
	return nil
}

func hiding(n *node, dir bool) Kind {
	switch {
	case !dir:
		return HideFile
	case n.empty != nil && n.hide == nil && n.hard == nil:
		return EmptyDir
	default:
		return HideDir
	}
}

// reveal fills in a step that shows n inside the hidden region around it, and gives the rule behind it.
func (b *builder) reveal(n *node, s state, reg region, out *Step) *rule {
	out.Kind, out.Source = Reveal, n.path
	if n.source != nil {
		out.Source, out.ID, out.Dir = n.source.path, n.source.info.ID, n.source.info.IsDir()
	} else if s.writable() {
		out.Kind = RevealWritable
	} else if s.root != nil && s.deny != nil {
		out.Unwritable = s.deny.why()
	}
	b.makeWay(n, reg, out)
	for _, r := range []*rule{n.keep, n.allow, n.root} {
		if r != nil {
			return r
		}
	}
	return s.owner
}

// makeWay lists what has to be created in the hidden directory around n for n to be mounted on.
func (b *builder) makeWay(n *node, reg region, out *Step) {
	out.HiddenBy = reg.top.path
	rel := strings.TrimPrefix(n.path, reg.top.path+"/")
	for i := 0; i <= len(rel); i++ {
		if i < len(rel) && rel[i] != '/' {
			continue
		}
		if full := reg.top.path + "/" + rel[:i]; !b.made[full] {
			b.made[full] = true
			out.Make = append(out.Make, rel[:i])
		}
	}
}

// pin keeps n, and the directories between it and the top of its region, from being renamed or removed.
func (b *builder) pin(n *node, reg region, cause *rule) error {
	for ; n != reg.top && !n.pinned; n = n.parent {
		if err := b.learn(n); err != nil {
			return err
		}
		n.pinned = true
		number := " (FS-41)"
		if n.info.IsLink() {
			number = " (FS-42)"
		}
		b.pins = append(b.pins, Step{Kind: Pin, Path: n.path, ID: n.info.ID, Dir: n.info.IsDir(), Why: cause.key + number})
		if cause.mandatory {
			b.mandatory++
		}
	}
	return nil
}

// learn asks for the object at n if that is not known yet.
func (b *builder) learn(n *node) error {
	if n.known {
		return nil
	}
	info, err := b.res.lstat(n.path)
	if err != nil {
		return &SearchError{Path: n.path, Err: err}
	}
	n.info, n.known = info, true
	return nil
}

func (b *builder) isDir(n *node) bool { return b.learn(n) == nil && n.info.IsDir() }
