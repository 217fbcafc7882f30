package fsview

import (
	"path"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// SuppliedFile is a file that a command sees in the place of the host's: in memory, read-only, mode 0644, of the caller.
// The zero value is no file.
type SuppliedFile struct {
	// Path is absolute: the name at which the file shows. It is taken as FS-9 takes a name: parents resolved, the last
	// component as written.
	Path string
	// Content is all that the file holds. It is not copied, and must not be changed while a plan with it is in use.
	Content []byte
}

// placeSupplied places the files that srt supplies (Input.Supplied), once it is known what is hidden.
//
// Each is put on the very name, also when that is a symbolic link: a mount hides the link, and whoever follows the path
// ends on the mount (step_into in fs/namei.c enters mounts before it looks for a link). So it does not matter where the
// link leads, or whether anything is there; what it leads to keeps its own name and content. And a mount on the target
// would not last: when a program of the host renames a new version onto a name, as resolvers do, the kernel takes off
// what is mounted there in every other namespace (detach_mounts, called by vfs_rename); nothing renames onto the link.
// Where the name itself is a file that the host replaces so, a running command sees the host's from then on: its lookups
// fail, since the resolver named there cannot be reached, and the next start is whole again.
//
// These files are no protection: what they stand in for may still be seen under another name.
func (b *builder) placeSupplied() error {
	for _, f := range b.in.Supplied {
		why := &rule{key: "the sandbox's own resolver", number: "NET-7", quiet: true, here: true, content: f.Content}
		loc := b.res.resolve(f.Path, false)
		switch {
		case loc.special, policy.Covers("/sys", loc.path):
			b.note("%s: %q lies in a file system of the kernel, and stays as it is (FS-47)", why.key, f.Path)
		case loc.blocked != nil:
			b.note("%s: %q cannot be inspected (%v), and stays as it is", why.key, f.Path, loc.blocked)
		case !loc.exists:
			// Nothing can be made there without making it on the host, and nothing is needed: what libc does without the
			// file is what the file would tell it.
			b.note("%s: %q does not exist, so nothing shows there", why.key, f.Path)
		case loc.info.IsDir():
			b.warn("%s: %q is a directory, on which no file can be put; it stays as it is, and programs may fail to look up names",
				why.key, f.Path)
		default:
			b.supplyAt(f.Path, loc, why)
		}
	}
	return nil
}

// supplyAt shows a file at a location, unless the settings say what is to be seen there.
func (b *builder) supplyAt(text string, loc location, why *rule) {
	target := loc
	if loc.info.IsLink() && !b.revealedLink(loc.path) { // the target of such a link shows at its name alone
		target = b.res.resolve(text, true)
	}
	for _, p := range []string{loc.path, target.path} {
		switch s := b.root.stateAt(p); {
		case s.hidden:
			b.note("%s: %q is hidden by %s, so nothing shows there", why.key, text, s.owner.label())
			return
		case s.fake:
			b.note("%s: %q is masked by %s, which stays", why.key, text, s.deny.label())
			return
		}
	}
	if !target.exists && b.hiddenLater(loc.path, target.path) {
		b.note("%s: what %q leads to must not be read once it is there, so nothing shows there (FS-10)", why.key, text)
		return
	}
	b.hold(loc, why)
	n := b.node(loc.path, loc.info)
	first(&n.supply, why)
}

// revealedLink reports whether a location is a symbolic link that an allowRead shows in a hidden directory (FS-22).
func (b *builder) revealedLink(location string) bool {
	n := b.root.find(location)
	return n != nil && n.source != nil && n.allow != nil && b.root.stateAt(n.parent.path).hidden
}

// hiddenLater reports whether one of some locations may not be read once something is there (FS-10, FS-55).
func (b *builder) hiddenLater(locations ...string) bool {
	for _, location := range locations {
		for i := range b.pending {
			if d := &b.pending[i]; d.read && policy.Covers(d.loc.path, location) {
				return true
			}
		}
		for ; location != "/"; location = path.Dir(location) {
			for _, p := range b.unreadable {
				if p.Match(location) {
					return true
				}
			}
		}
	}
	return false
}

// ownFile is the rule by which the name shows a file of srt's own making, or nil. What the settings mask comes first.
func (n *node) ownFile() *rule {
	if n.fake != nil {
		return n.fake
	}
	return n.supply
}

// supplied reports whether a file of srt's shows at a location.
func (b *builder) supplied(location string) bool {
	n := b.root.find(location)
	return n != nil && n.fake == nil && n.supply != nil
}
