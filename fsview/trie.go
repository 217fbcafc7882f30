package fsview

import (
	"sort"
	"strings"
)

// rule is one reason to treat a location in some way: an entry, a mandatory name, or a duty of srt's own.
type rule struct {
	key       string // where the entry stands, or the name behind the rule
	entry     string // the entry as written, empty for rules that are not entries
	number    string // the rule of the specification
	quiet     bool   // not an entry of the person: nothing is said when it has no effect
	keepHide  bool   // as a write root: does not re-open a hidden directory (FS-28)
	mandatory bool
	here      bool // about this path alone, not about the object: not repeated where mounts show that again

	refused bool // an allowRead of which nothing more is said, and which re-opens nothing later (settleReads)

	content []byte // of a mask (FS-58) or supplied file: what it shows
}

// why is the text of a step's Why.
func (r *rule) why() string { return r.key + " (" + r.number + ")" }

// node is one component of the tree of locations that carry rules. Fields that hold a rule are nil when there is none;
// the first rule of a kind stays.
type node struct {
	name     string
	path     string
	parent   *node
	children map[string]*node

	info  Info
	known bool // info is filled in

	hide  *rule // denyRead
	hard  *rule // read deny that no list lifts: credentials, stand-ins (FS-11), kernel mounts
	empty *rule // FS-24
	allow *rule // allowRead of this very name
	root  *rule // allowWrite
	deny  *rule // denyWrite or mandatory
	keep  *rule // FS-23
	fake  *rule // a mask (FS-58)

	supply *rule // a file that srt supplies (SuppliedFile), placed where nothing hides or masks the name

	spread  bool      // hide or hard stands for a deny of `/` (FS-22)
	unshown bool      // for an allow of a link: it shows nothing, which has been said (FS-22)
	source  *location // for an allow of a link: where its content lies (FS-9)
	held    *rule     // cannot be renamed or removed, because of this rule (FS-42)
	pinned  bool
}

// at finds or makes the node of a location.
func (n *node) at(location string) *node {
	cur := n
	for rest := location[1:]; rest != ""; {
		name, tail, _ := strings.Cut(rest, "/")
		child := cur.children[name]
		if child == nil {
			if cur.children == nil {
				cur.children = make(map[string]*node, 1)
			}
			child = &node{name: name, path: location[:len(location)-len(rest)+len(name)], parent: cur}
			cur.children[name] = child
		}
		cur, rest = child, tail
	}
	return cur
}

func (n *node) sorted() []*node {
	list := make([]*node, 0, len(n.children))
	for _, c := range n.children {
		list = append(list, c)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list
}

// kernelTree reports whether n is one of the directories that the sandbox replaces or shows read-only (FS-47).
func (n *node) kernelTree() bool {
	return n.parent != nil && n.parent.parent == nil && (n.name == "proc" || n.name == "dev" || n.name == "sys")
}

// state is what the rules at and above a location make of it.
type state struct {
	hidden bool
	hard   bool  // hidden, and nothing beneath is re-allowed
	fake   bool  // a file with a content of srt's own (FS-58, SuppliedFile); not hidden
	owner  *rule // when hidden: the deny
	by     *node // when hidden: where that deny stands
	root   *rule // the write root that covers it
	deny   *rule // the write deny that covers it
}

func (s state) writable() bool { return !s.hidden && s.root != nil && s.deny == nil }

// enter gives the state at n from that of its parent: the deepest read rule decides and an allow wins at equal depth
// (FS-22); writing needs a root and no deny, at any depth (FS-26).
func (s state) enter(n *node) state {
	if own := n.ownFile(); own != nil { // a mask beats every list (FS-58)
		return state{fake: true, root: s.root, deny: own}
	}
	if s.root == nil {
		s.root = n.root
	}
	if s.deny == nil {
		s.deny = n.deny
	}
	if n.kernelTree() {
		s.root = nil
	}
	switch {
	case s.hard:
	case n.hard != nil:
		s.hidden, s.hard, s.owner, s.by = true, true, n.hard, n
	case n.empty != nil:
		s.hidden, s.hard, s.owner, s.by = true, true, n.empty, n
	case n.hide != nil && n.lifted():
		s.hidden, s.owner, s.by = false, nil, nil
	case n.hide != nil:
		s.hidden, s.owner, s.by = true, n.hide, n
	case n.allow != nil || n.reopens():
		s.hidden, s.owner, s.by = false, nil, nil
	}
	if s.hidden && n.keep != nil {
		s.hidden, s.deny = false, n.keep // what srt re-opens for itself is never writable (FS-23)
	}
	return s
}

// reopens reports whether a write root here shows itself inside a hidden directory (FS-22).
func (n *node) reopens() bool { return n.root != nil && !n.root.keepHide }

// lifted reports whether an allow at n undoes the deny at n: for a file only its own allowRead does (FS-22).
func (n *node) lifted() bool {
	return n.allow != nil || (n.reopens() && (n.info.IsDir() || n.spread))
}

// descend calls visit for n and for every node on the way to a location, as far as there are nodes.
func (n *node) descend(location string, visit func(*node)) {
	visit(n)
	for rest := location[1:]; rest != ""; {
		name, tail, _ := strings.Cut(rest, "/")
		if n = n.children[name]; n == nil {
			return
		}
		visit(n)
		rest = tail
	}
}

// stateAt is the state of a location, which may lie beneath every node.
func (n *node) stateAt(location string) state {
	var s state
	n.descend(location, func(c *node) { s = s.enter(c) })
	return s
}

// readDenied reports whether a read deny or a mask stands at n or beneath it.
func (n *node) readDenied() bool {
	if n.hide != nil || n.hard != nil || n.empty != nil || n.fake != nil {
		return true
	}
	for _, c := range n.children {
		if c.readDenied() {
			return true
		}
	}
	return false
}
