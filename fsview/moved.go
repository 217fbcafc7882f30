package fsview

import "strings"

// checkMoved refuses a plan in which one object stands at two of the protected paths. Whoever exchanges two of them while
// the plan is made (renameat2(2), RENAME_EXCHANGE) may show the same object at both, and the other one would be protected
// at neither (CVE-2021-30465 is such a race). An object that has several names, as hard links, mounts and directories
// that ignore case give, is there with good reason.
func (b *builder) checkMoved() error {
	var err error
	seen := make(map[Identity]*node)
	b.root.each(func(n *node) {
		why := n.protection()
		if err != nil || why == nil || !n.known || !n.info.IsDir() && (!n.info.ID.Type.IsRegular() || n.info.Link != 1) {
			return
		}
		other := seen[n.info.ID]
		switch {
		case other == nil:
			seen[n.info.ID] = n
		case !strings.EqualFold(other.path, n.path) && !b.sameObject(other.path, n.path):
			err = &EntryError{Entry: why.label(), Path: n.path, Reason: ErrMoved,
				Advice: "wait until nothing renames it, and start again"}
		}
	})
	return err
}

// protection is the rule for whose sake the object at n must be the one that the plan names, or nil.
func (n *node) protection() *rule {
	for _, r := range []*rule{n.hide, n.hard, n.fake, n.empty, n.deny, n.held} {
		if r != nil {
			return r
		}
	}
	return nil
}

// sameObject tells whether mounts show one object at both paths.
func (b *builder) sameObject(p, q string) bool {
	if b.mounts == nil {
		return false
	}
	on, inner := b.mounts.locate(p)
	other, innerOther := b.mounts.locate(q)
	return on.Dev == other.Dev && inner == innerOther
}
