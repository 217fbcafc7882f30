package fsview

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/srt-sandbox/srt/fsview/internal/glob"
)

// defaultSearchDepth is mandatoryDenySearchDepth when none is given (FS-1).
const defaultSearchDepth = 3

// defaultMountMax is the kernel's default of fs.mount-max (FS-65).
const defaultMountMax = 100000

// builder carries one Build.
type builder struct {
	in     Input
	res    *resolver
	root   *node
	plan   *Plan
	mounts *mountTable // nil when no object shows twice

	roots   []*node      // every granted write root
	links   []*node      // re-allowed symbolic links
	reads   []readGrant  // what allowRead names
	grants  []grant      // allow entries, to be told about when they grant nothing
	pending []absentDeny // denies of what is not there
	// unreadable are the patterns of read denies, those included that nothing can match as long as all around is hidden.
	unreadable []*glob.Pattern
	rootDeny   *rule // a read deny of `/` that is in force

	scratch   map[string]bool // search starts in which only names that exist are protected
	creatable map[string]bool // answers of canCreate
	made      map[string]bool // paths already in some Make
	pins      []Step
	mandatory int // steps that come from mandatory names
}

// Build makes the plan of one command from its rules and the disk. It changes nothing and opens no file but directories
// to list them. t is used from the calling goroutine alone.
//
// Errors: *EntryError for a deny entry that cannot be honoured, *SearchError when the disk could not be read (FS-40),
// *DirError for a working directory that there is not, *SizeError (FS-65). A nil error means that every deny is in the plan or needs no step.
func Build(t Tree, in Input) (*Plan, error) {
	rules := &in.Rules
	if in.Program != "" {
		in.OwnFiles, in.Keep = append(slices.Clip(in.OwnFiles), in.Program), append(slices.Clip(in.Keep), in.Program)
	}
	in.OwnFiles, in.Keep = slices.Concat(in.OwnFiles, in.TrustFiles, in.TrustDirs), append(slices.Clip(in.Keep), in.TrustFiles...)
	if in.MandatoryDepth <= 0 {
		in.MandatoryDepth = defaultSearchDepth
	}
	hint := len(rules.DenyRead) + len(rules.DenyWrite) + len(rules.AllowRead) + len(rules.AllowWrite) +
		len(rules.CredentialDeny) + len(in.Masks)
	b := &builder{in: in, res: newResolver(t, hint), root: &node{path: "/"}, plan: &Plan{Steps: make([]Step, 0, hint+8),
		Rules: *rules, Masks: in.Masks, ForeignProcesses: in.ForeignProcesses}}
	b.plan.Warnings = append(b.plan.Warnings, rules.Warnings...)
	steps := []func() error{b.readMounts, b.collect, b.collectAbsentOwn, b.collectPrivateFiles, b.collectMasks, b.spreadRoot, b.searchMandatory, b.repeatRules,
		b.settleLinks, b.placeSupplied, b.settleAbsent, b.settleFold, b.listAllowed, b.emit, b.checkMoved, b.tell, b.chooseDir, b.checkSize}
	if in.Disabled {
		b.plan.Unrestricted = true
		steps = []func() error{b.collectDisabled, b.placeSupplied, b.emit, b.chooseDir, b.checkSize}
		if len(in.Masks)+len(in.PrivateFiles)+len(in.TrustFiles)+len(in.TrustDirs) > 0 {
			steps = []func() error{b.readMounts, b.collectDisabled, b.collectTrustFiles, b.collectPrivateFiles, b.collectMasks, b.spreadRoot, b.repeatRules, b.placeSupplied, b.emit,
				b.checkMoved, b.chooseDir, b.checkSize}
		}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.plan, nil
}

// collectDisabled sets the rules of filesystem.disabled: everything is writable, and only masks and the hiding of further
// mounts of the kernel's own file systems are left, beside the files that srt supplies, as /proc and /sys themselves are protected (FS-56).
func (b *builder) collectDisabled() error {
	b.plan.Warnings = nil
	b.root.root = &rule{key: "filesystem.disabled", number: "FS-56", quiet: true}
	return b.collectKernelMounts()
}

// chooseDir says where the command starts: where srt was started, or where that is hidden, in the home or at the top (FS-49).
// A directory that there is not is an error, as for every other program that starts one (chdir(2)): what is written with
// relative names would go somewhere else.
func (b *builder) chooseDir() error {
	loc := b.res.resolve(b.in.Cwd, true)
	switch {
	case loc.special: // found out when it is entered
	case loc.blocked != nil:
		return &DirError{b.in.Cwd, loc.blocked}
	case loc.loop:
		return &DirError{b.in.Cwd, syscall.ELOOP}
	case loc.exists && !loc.info.IsDir(), loc.file != "":
		return &DirError{b.in.Cwd, syscall.ENOTDIR}
	case !loc.exists:
		return &DirError{b.in.Cwd, syscall.ENOENT}
	}
	if b.startsAt(loc) {
		b.plan.Dir = loc.path
		return nil
	}
	b.plan.Dir = "/"
	if home := b.in.Home; home != "" {
		if loc := b.res.resolve(home, true); b.startsAt(loc) {
			b.plan.Dir = loc.path
		}
	}
	b.warnDir()
	return nil
}

// startsAt reports whether a command can start at a location.
func (b *builder) startsAt(loc location) bool {
	return loc.special || loc.exists && loc.info.IsDir() && !b.root.stateAt(loc.path).hidden
}

func (b *builder) warnDir() {
	if s := b.root.stateAt(b.res.resolve(b.in.Cwd, true).path); s.hidden && s.hard {
		b.warn("the working directory %q is hidden from the command, which starts in %q, by %s: %s, which no list re-opens (FS-49)",
			b.in.Cwd, b.plan.Dir, s.owner.label(), s.owner.number)
		return
	}
	b.warn("the working directory %q is hidden from the command, which starts in %q; re-allow it with "+
		"filesystem.allowRead to start there (FS-49)", b.in.Cwd, b.plan.Dir)
}

// checkSize refuses a plan that the kernel would refuse half-way (FS-65).
func (b *builder) checkSize() error {
	limit := b.in.MountMax
	if limit <= 0 {
		limit = defaultMountMax
	}
	if total := len(b.plan.Steps) + b.in.MountsInUse; total > limit {
		return &SizeError{Mounts: total, Mandatory: b.mandatory, Max: limit}
	}
	return nil
}

func (b *builder) warn(format string, args ...any) {
	b.plan.Warnings = append(b.plan.Warnings, fmt.Sprintf(format, args...))
}

func (b *builder) note(format string, args ...any) {
	b.plan.Notes = append(b.plan.Notes, fmt.Sprintf(format, args...))
}
