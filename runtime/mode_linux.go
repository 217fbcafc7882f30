package runtime

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/probe/hostfacts"
)

// The mode of a start. Mode full is tried without asking for anything: what may refuse it shows at the step that is refused, and
// the features are asked only then, once in a process. SRT_WITHOUT has them asked at once.

// fullRefused remembers for the process that a start in mode full was refused something. What refuses it, filters, masks and
// the limits of a container, does not go away while this process lives, or is not to be counted on.
var fullRefused atomic.Bool

// features asks for all of them.
var features = sync.OnceValue(func() []Feature {
	around := hostfacts.Look(hostfacts.Here)
	list := make([]Feature, 0, len(probe.All()))
	for _, f := range probe.All() {
		list = append(list, featureFound(f, f.Probe(), around))
	}
	return list
})

// featureFound is a feature as it was found, with what to do if it is missing.
func featureFound(f *probe.Feature, r probe.Result, around hostfacts.Facts) Feature {
	found := Feature{Key: f.Key, Name: f.Name, Present: r.Present(), Value: r.Value, Found: r.Found, Needs: f.Needs, Why: f.Why}
	if found.Present && f.Key != probe.Landlock.Key || found.Value >= scopeLandlock {
		return found
	}
	found.Unasked = probe.Unasked(r.Err)
	remedy := around.RemedyFor(f.Key)
	if a, ok := errors.AsType[*probe.AbsentError](r.Err); ok && a.Reason == probe.ReasonForced {
		remedy = Remedy{Text: "Unset " + probe.Variable + ", which takes features away"}
	}
	if !remedy.IsZero() {
		found.Remedy = &remedy
	}
	return found
}

// chooseMode gives the mode in which commands are started. It asks for no feature until a start has been refused one
// (noteRefusal). weaker is enableWeakerNestedSandbox of the command's settings. The error, a *ModeError or a
// *probe.WithoutError, says that nothing can be started.
func chooseMode(weaker bool) (modeChoice, error) {
	forced, err := probe.Forced()
	switch {
	case err != nil:
		return modeChoice{mode: ModeNone}, err
	case !forced && !fullRefused.Load():
		return modeChoice{mode: ModeFull, possible: ModeFull}, nil
	}
	return askMode(weaker)
}

// askMode gives the mode by what is there.
func askMode(weaker bool) (modeChoice, error) {
	if _, err := probe.Forced(); err != nil {
		return modeChoice{mode: ModeNone}, err
	}
	c := decideMode(features(), weaker)
	return c, c.err(nil)
}

// lesserMode gives the mode in which to begin a start again that failed in another one. False: there is none that would not
// fail in the same way. The error says then why this one is of no use, nil if the failure itself does.
func lesserMode(now Mode, failure error, weaker bool) (Mode, bool, error) {
	if now != ModeFull && now != ModeNested || !refusedByKernel(failure) {
		return now, false, nil
	}
	c, err := askMode(weaker)
	switch {
	case err != nil:
		if e, ok := errors.AsType[*ModeError](err); ok {
			e.cause = failure
		}
		return now, false, err
	case rank(c.mode) > rank(now):
		fullRefused.Store(true)
		return c.mode, true, nil
	case !probe.CgroupNamespace.Probe().Present() && !fullRefused.Swap(true):
		return now, true, nil // the one namespace that can be left out
	}
	// The features are there. What failed is of this one start, or of the steps that no feature is about.
	return now, false, nil
}

// dryAttempt is one in the mode that a start would be in, to be looked at. Where no start is possible it is as in mode full, and told
// says why.
func (c *Cmd) dryAttempt() (how attempt, told []string, err error) {
	if c.cfg == nil {
		if err := c.configure(); err != nil {
			return how, nil, err
		}
	}
	choice, err := askMode(c.cfg.EnableWeakerNestedSandbox)
	if _, none := errors.AsType[*ModeError](err); err != nil && !none {
		return how, nil, err
	}
	how.dry = true
	how.setMode(choice.mode)
	if choice.mode == ModeNone {
		told = append(told, err.Error())
	}
	return how, told, nil
}

// setMode makes an attempt one in a mode.
func (a *attempt) setMode(m Mode) { a.mode, a.hostProc = m, m == ModeNested }

// rank orders modes, the best one first.
func rank(m Mode) int {
	for i, n := range modeNeeds {
		if n.mode == m {
			return i
		}
	}
	return len(modeNeeds)
}

// refusals are the errors of a kernel, or of what surrounds this process, that does not let a sandbox be made.
var refusals = []syscall.Errno{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EINVAL, unix.ENOSPC, unix.EUSERS, unix.EOPNOTSUPP, unix.EROFS, unix.ENODEV}

// refusedByKernel tells whether a start failed at making the sandbox in a way that a lesser mode may avoid. What fails
// otherwise, a file that was replaced for example, is of the one start.
func refusedByKernel(err error) bool {
	if fsview.FreshProcRefused(err) {
		return true
	}
	step, ok := errors.AsType[*ns.StepError](err)
	if !ok {
		return false
	}
	for _, errno := range refusals {
		if errors.Is(step, errno) {
			return true
		}
	}
	return false
}
