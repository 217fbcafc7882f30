package fsview

import (
	"slices"

	"github.com/srt-sandbox/srt/fsview/internal/glob"
)

// What belongs to srt and to its caller, and is kept from commands whatever the settings allow. All of it is under one rule
// (FS-51, CLI-30): a command cannot change it, remove it, put something in its place, make it where it does not exist, or
// reach it by a second name. Links on the way to it and the directories around it stay where they are (FS-41, FS-42).

// The names of rules of srt's own that hide something.
const (
	keyPrivateFile = "private file"
	keyOwnDir      = "srt's own directory"
	keyKernelMount = "kernel mount"
)

// collectOwnFile denies writing to one file of srt's own, or to one directory and all in it.
func (b *builder) collectOwnFile(p string) error {
	own := &rule{key: "srt's own file", number: "FS-51", quiet: true}
	if slices.Contains(b.in.TrustFiles, p) || slices.Contains(b.in.TrustDirs, p) {
		own.key, own.number = "certificates to be trusted", "TLS-9"
	}
	loc := b.res.resolve(p, true)
	b.plan.Own = append(b.plan.Own, loc.path)
	b.hold(loc, own)
	switch {
	case loc.exists:
		if p != b.in.Program && b.changesByOtherName(loc.info) {
			return otherNameError(own, loc)
		}
		b.denyWriteAt(loc.path, loc.info, own)
	case loc.blocked != nil && loc.ancestor != "/":
		b.denyWriteAt(loc.ancestor, Info{}, own)
	}
	return nil
}

// collectTrustFiles denies writing to the trust files where nothing else of srt's own is protected (FS-56, TLS-9).
func (b *builder) collectTrustFiles() error {
	for _, p := range slices.Concat(b.in.TrustFiles, b.in.TrustDirs) {
		if err := b.collectOwnFile(p); err != nil {
			return err
		}
	}
	return nil
}

// changesByOtherName tells whether a command could change a file by a further name (a hard link), which a mount on the first
// one says nothing about (FS-45): one that a command made before, in a run to which the file was any other. Where the other
// names are nobody can tell. Files of root's are safe from everybody else: no command of another user may open them for
// writing or change their modes. No name can be added while a command runs that has the file under this rule: a link would
// have to cross its mount (EXDEV, link(2)).
func (b *builder) changesByOtherName(info Info) bool {
	return hasOtherName(info) && (b.in.UID == 0 || info.UID != 0) && (len(b.roots) > 0 || b.in.Disabled)
}

// hasOtherName tells whether an object has a further name. That directories have links is another matter.
func hasOtherName(info Info) bool { return !info.IsDir() && info.Link > 1 }

func otherNameError(why *rule, loc location) error {
	return &EntryError{Entry: why.label(), Path: loc.path, Reason: ErrOtherName,
		Advice: "a command could reach it by that: copy it and rename the copy onto it, which leaves the other name with the old file"}
}

// collectPrivateFiles hides the files through which the caller is spoken to: who reads one takes part, and a FIFO can be
// written to whatever a mount allows.
func (b *builder) collectPrivateFiles() error {
	for _, p := range b.in.PrivateFiles {
		loc := b.res.resolve(p, true)
		why := &rule{key: keyPrivateFile, number: "CLI-30", quiet: true}
		switch {
		case loc.special: // replaced, and not seen (FS-47)
		case loc.blocked != nil && loc.ancestor == "/":
			return uninspectedError(why, loc)
		case loc.blocked != nil:
			first(&b.node(loc.ancestor, Info{}).hard, why) // FS-11
		case loc.exists && hasOtherName(loc.info):
			return otherNameError(why, loc) // whoever owns it: a FIFO is for whoever may open it, and reading counts as well
		case loc.exists && !loc.info.IsDir():
			b.hold(loc, why)
			first(&b.node(loc.path, loc.info).hard, why)
		case !loc.exists && !b.in.Disabled: // else nothing can be said about names (FS-56)
			b.denyCreation(loc, why, false)
		}
	}
	return nil
}

// collectAbsentOwn hides srt's own directories, and denies the making of srt's own files that do not exist: a settings file
// that a later run would read (FS-51).
func (b *builder) collectAbsentOwn() error {
	for _, p := range b.in.Private {
		loc := b.res.resolve(p, true)
		why := &rule{key: keyOwnDir, number: "FS-51", quiet: true}
		switch {
		case loc.exists && loc.path != "/":
			b.hold(loc, why)
			first(&b.node(loc.path, loc.info).hard, why)
		case loc.blocked != nil && loc.ancestor == "/":
			return uninspectedError(why, loc)
		case loc.blocked != nil:
			first(&b.node(loc.ancestor, Info{}).hard, why) // FS-11
		case !loc.exists && !loc.special && b.root.stateAt(loc.path).writable():
			// Its missing parents are everybody's (~/.local): only the path itself must not come to be.
			b.plan.Patterns = append(b.plan.Patterns, Pattern{Text: glob.Quote(loc.path), Write: true, Why: why.why()})
		}
	}
	for _, p := range b.in.OwnFiles {
		loc := b.res.resolve(p, true)
		if loc.exists || loc.special || loc.blocked != nil {
			continue
		}
		b.denyCreation(loc, &rule{key: "srt's own file", number: "FS-51", quiet: true}, false)
	}
	return nil
}
