package runtime

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/fsview/placeholder"
	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// heldNames are the placeholders of one command (FS-54).
type heldNames struct{ session *placeholder.Session }

// release takes the placeholders away that no other sandbox relies on. It is called when the sandbox has ended.
func (h *heldNames) release() error {
	if h == nil {
		return nil
	}
	return h.session.Release()
}

// stateDir is where placeholders are recorded: as placeholder.DefaultState has it, but for an srt in a sandbox of srt. That may
// write to few places, and none that no command of its own may write to but what the outer sandbox has for itself in memory.
func stateDir(uid int) (string, error) {
	if !path.IsAbs(os.Getenv("XDG_STATE_HOME")) && probe.WithinSrt() {
		return fmt.Sprintf("/dev/shm/srt-%d", uid), nil
	}
	return placeholder.DefaultState(os.Getenv, uid)
}

// makePlaceholders makes the placeholders. An outer srt that refuses to have a name made (EROFS) holds it: its broker has the command
// make none either, and lasts as long as anything in its sandbox. Those names are given.
func makePlaceholders(state string, names []placeholder.Name) (*placeholder.Session, map[string]bool, error) {
	heldOutside := map[string]bool{}
	for {
		session, err := placeholder.Hold(state, names)
		failed, ok := errors.AsType[*placeholder.Error](err)
		if !ok || !errors.Is(err, unix.EROFS) || !probe.WithinSrt() {
			return session, heldOutside, err
		}
		left := slices.DeleteFunc(slices.Clone(names), func(n placeholder.Name) bool { return policy.Covers(failed.Path, n.Path) })
		if len(left) == len(names) {
			return nil, nil, err // it is about something else
		}
		for _, n := range names {
			if policy.Covers(failed.Path, n.Path) {
				heldOutside[n.Path] = true
			}
		}
		names = left
	}
}

// denyPlaceholders removes what starts that have died left on the disk, and keeps the command from removing what other
// sandboxes rely on. It remembers whether there are any.
func (l *launch) denyPlaceholders(in *fsview.Input) error {
	if l.cfg.Filesystem.Disabled {
		return nil
	}
	for _, state := range in.Private {
		if !l.dry {
			if err := placeholder.Sweep(state); err != nil && !errors.Is(err, placeholder.ErrState) {
				l.cmd.sandbox.opts.warn(err.Error())
			}
		}
		others, err := placeholder.List(state)
		if errors.Is(err, placeholder.ErrState) {
			// It is not this user's: that of another root, seen from within a user namespace. Nothing of this user's is in it.
			l.cmd.sandbox.opts.logger.Debug("no placeholders are known", "reason", err)
			continue
		}
		if err != nil {
			return err
		}
		in.Rules.DenyWrite = append(in.Rules.DenyWrite, placeholderRules(others)...)
		l.neighbours = l.neighbours || len(others) > 0
	}
	return nil
}

// adoptPlaceholders makes this sandbox rely on those placeholders of others that its plan takes for existing names: they
// stay when the others end, and the denies with them (FS-54).
func (l *launch) adoptPlaceholders(in fsview.Input, plan *fsview.Plan) (*fsview.Plan, error) {
	state, err := stateDir(l.host.uid)
	if err != nil {
		return nil, err
	}
	for range holdAttempts {
		session, err := placeholder.Hold(state, nil)
		if err != nil {
			return nil, err
		}
		if err = session.Adopt(deniedPaths(plan)); err == nil {
			l.held = &heldNames{session}
			return plan, nil
		}
		if err = errors.Join(err, session.Release()); !errors.Is(err, placeholder.ErrChanged) {
			return nil, err
		}
		if plan, err = l.build(in); err != nil {
			return nil, err
		}
		if l.chooseMechanism(plan); l.mechanism != nil && l.mechanism.Name == byPlaceholders {
			return l.planWithPlaceholders(in, plan, errors.New(l.mechanism.Why))
		}
	}
	return nil, errKeepChanging
}

// holdAttempts is how often a start begins again when the disk changes under it (FS-63).
const holdAttempts = 3

// planWithPlaceholders makes the plan where system calls cannot be put to srt: every name that must not come to exist is
// made, as an empty placeholder, and denied like anything that exists (FS-54). It says so, and says what cannot be held.
func (l *launch) planWithPlaceholders(in fsview.Input, first *fsview.Plan, reason error) (*fsview.Plan, error) {
	state, err := stateDir(l.host.uid)
	if err != nil {
		return nil, err
	}
	plan := first
	for range holdAttempts {
		var session *placeholder.Session
		var heldOutside map[string]bool
		if session, heldOutside, err = makePlaceholders(state, namesToHold(plan)); err != nil {
			return nil, err
		}
		again := in
		again.Rules.DenyWrite = append(append([]policy.PathRule(nil), in.Rules.DenyWrite...), placeholderRules(session.Placeholders())...)
		if plan, err = l.build(again); err == nil {
			if err = stillAbsent(plan, heldOutside); err == nil {
				err = session.Adopt(deniedPaths(plan))
			}
		}
		if err == nil {
			l.held = &heldNames{session}
			l.sayHeld(plan, len(session.Placeholders()), reason)
			return plan, nil
		}
		if releaseErr := session.Release(); releaseErr != nil {
			return nil, errors.Join(err, releaseErr)
		}
		if !errors.Is(err, placeholder.ErrChanged) && !errors.Is(err, errStillAbsent) {
			return nil, err
		}
		if plan, err = l.build(in); err != nil {
			return nil, err
		}
	}
	return nil, errKeepChanging
}

// namesToHold are the names that a command could create.
func namesToHold(plan *fsview.Plan) (names []placeholder.Name) {
	for _, a := range plan.Absent {
		if a.Write {
			names = append(names, placeholder.Name{Path: a.Path, Dir: a.Directory})
		}
	}
	return names
}

// placeholderRules deny the writing of what was made.
func placeholderRules(list []placeholder.Placeholder) (rules []policy.PathRule) {
	for _, p := range list {
		rules = append(rules, policy.PathRule{Key: "placeholder", Entry: p.Path, Path: p.Path})
	}
	return rules
}

// deniedPaths are all places that a plan denies.
func deniedPaths(plan *fsview.Plan) (paths []string) {
	for _, s := range plan.Steps {
		switch s.Kind {
		case fsview.ReadOnly, fsview.HideDir, fsview.HideFile:
			paths = append(paths, s.Path)
		}
	}
	return paths
}

// errKeepChanging says that no attempt met a disk that stayed as it was.
var errKeepChanging = fmt.Errorf("names that must not exist keep changing while the command starts; start it again: %w", placeholder.ErrChanged)

var errStillAbsent = errors.New("a name that must not exist is neither there nor held")

// stillAbsent makes sure that no name was left out but those that are held outside.
func stillAbsent(plan *fsview.Plan, heldOutside map[string]bool) error {
	for _, a := range plan.Absent {
		if a.Write && !heldOutside[a.Path] {
			return fmt.Errorf("%w: %q", errStillAbsent, a.Path)
		}
	}
	return nil
}

// sayHeld tells the person what the sandbox does without a listener, and what it cannot do.
func (l *launch) sayHeld(plan *fsview.Plan, count int, reason error) {
	warn := l.cmd.sandbox.opts.warn
	if l.held.session.Volatile() {
		warn("the record of placeholder files is kept in memory: a power cut leaves them behind (FS-54)")
	}
	if count > 0 {
		warn(fmt.Sprintf("%d names that must not come to exist are held by empty placeholder files until the command ends (FS-54): %v",
			count, reason))
	}
	var open []string
	for _, a := range plan.Absent {
		if a.Read && !a.Write {
			open = append(open, a.Why+" "+path.Clean(a.Path))
		}
	}
	for _, p := range plan.Patterns {
		if p.Read || p.Write {
			open = append(open, p.Why+" "+p.Text)
		}
	}
	if len(open) > 0 {
		warn("these hold for what exists now, not for what appears while the command runs, because system calls cannot be put to " +
			"srt here (FS-55): " + strings.Join(open, ", "))
	}
}
