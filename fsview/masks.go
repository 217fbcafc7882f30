package fsview

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
)

// What a content function (Input.FakeContent) answers when a file gets no fake. A file that it may not read (EACCES) is
// hidden too: a command could give itself the permission. Any other error stops the start.
var (
	// ErrHideUnmasked says that the file cannot be masked and must be hidden (CRED-9: not text, too large).
	ErrHideUnmasked = errors.New("the file cannot be masked")
	// ErrLeaveUnmasked says that the file holds nothing to mask and stays as it is (FS-59: no match with warn).
	ErrLeaveUnmasked = errors.New("the file holds nothing to mask")
	// ErrMask is the reason of an *EntryError for a mask whose content could not be made.
	ErrMask = errors.New("the file's fake content could not be made")
)

// collectMasks places the fake files. Of two entries for one file the last one counts (FS-58).
func (b *builder) collectMasks() error {
	seen := make(map[string]bool, len(b.in.Masks))
	for i := len(b.in.Masks) - 1; i >= 0; i-- {
		r := b.in.Masks[i]
		why := &rule{key: r.Key, entry: r.Entry, number: "FS-58"}
		loc := b.res.resolve(r.Path, true)
		if loc.exists && loc.info.ID.Type.IsRegular() {
			if seen[loc.path] {
				b.note("%s: a later entry masks %q (FS-58)", why.label(), loc.path)
				continue
			}
			seen[loc.path] = true
		}
		b.hold(loc, why)
		if err := b.collectMask(i, loc, why); err != nil {
			return err
		}
	}
	return nil
}

// collectMask places one mask. What cannot be masked is hidden, and nothing re-opens that (CRED-9); what does not exist is
// passed over (FS-59).
func (b *builder) collectMask(entry int, loc location, why *rule) error {
	switch {
	case loc.special:
		return b.hideReplaced(loc.path, why, true)
	case loc.blocked != nil && loc.ancestor == "/":
		return uninspectedError(why, loc)
	case loc.blocked != nil:
		b.note("%s: %q cannot be inspected (%v), %q is hidden in its place (FS-11)", why.label(), loc.path, loc.blocked,
			loc.ancestor)
		first(&b.node(loc.ancestor, Info{}).hard, why)
		return nil
	case !loc.exists:
		b.note("%s: %q does not exist, nothing to mask (FS-59)", why.label(), loc.path)
		return nil
	}
	at, info := loc.path, loc.info
	if last := b.lastLink(loc); at == "/" && last != "/" {
		at, info = path.Dir(last), Info{} // FS-7
	}
	n := b.node(at, info)
	hide := func(reason string) {
		b.warn("%s: %q %s, so it is hidden", why.label(), loc.path, reason)
		first(&n.hard, why)
	}
	switch {
	case loc.info.IsDir():
		hide("is a directory, which cannot be masked")
		return nil
	case !loc.info.ID.Type.IsRegular():
		hide("is not a regular file and cannot be masked")
		return nil
	case b.in.FakeContent == nil:
		hide("is to be masked, for which this version has no fake content")
		return nil
	}
	if link := b.openLink(loc.held); link != "" && b.root.stateAt(loc.path).hidden {
		hide(fmt.Sprintf("is denied and is reached through the link %q, which a command can have made: only an entry that names the file itself masks it", link))
		return nil
	}
	content, err := b.in.FakeContent(entry, loc.path)
	switch {
	case errors.Is(err, ErrLeaveUnmasked):
		b.note("%s: %q stays as it is: %v (FS-59)", why.label(), loc.path, err)
	case errors.Is(err, ErrHideUnmasked), errors.Is(err, syscall.EACCES):
		hide("cannot be masked (" + strings.TrimPrefix(err.Error(), ErrHideUnmasked.Error()+": ") + ")")
	case err != nil:
		return &EntryError{Entry: why.label(), Path: loc.path, Reason: ErrMask, Err: err,
			Advice: "correct the entry, or deny the file in place of masking it"}
	default:
		why.content = content
		n.setFake(why)
	}
	return nil
}

// setFake shows the content of a rule at n. A directory that stands for a file which cannot be reached is hidden (FS-11).
func (n *node) setFake(r *rule) {
	if n.known && n.info.IsDir() {
		first(&n.hard, r)
		return
	}
	first(&n.fake, r)
}
