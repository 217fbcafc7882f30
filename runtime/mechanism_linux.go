package runtime

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/bpf"
	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/fsview/placeholder"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/runtime/violation"
	"github.com/srt-sandbox/srt/seccomp"
)

// The choice of what holds the rules about names that do not exist: hooks in the kernel where they can hold all of them, else
// the broker, else placeholders (FS-30, FS-54, FS-55).

// The mechanisms by name.
const (
	byKernel       = "kernel"
	byBroker       = "broker"
	byPlaceholders = "placeholders"
)

// holdNames chooses the mechanism for a plan, and gives the plan to go on with: another one where placeholders had to be
// made. The filters depend on the choice, so hooks that turn out not to hold a sandbox's rules end the attempt (armNames).
func (l *launch) holdNames(in fsview.Input, plan *fsview.Plan) (*fsview.Plan, error) {
	l.chooseMechanism(plan)
	if l.mechanism != nil {
		l.cmd.sandbox.opts.logger.Debug("what does not exist yet is held by the "+l.mechanism.Name, "why", l.mechanism.Why)
	}
	if plan.ForeignProcesses && l.guard == nil {
		return nil, &UnjudgedProcessesError{brokerAvailable()}
	}
	switch {
	case l.dry:
	case l.mechanism != nil && l.mechanism.Name == byPlaceholders:
		return l.planWithPlaceholders(in, plan, errors.New(l.mechanism.Why))
	case l.neighbours:
		return l.adoptPlaceholders(in, plan)
	}
	return plan, nil
}

// chooseMechanism sets mechanism, and guard or hooked.
func (l *launch) chooseMechanism(plan *fsview.Plan) {
	l.mechanism, l.guard, l.hooked = nil, nil, nil
	guard := fsview.NewGuard(plan)
	need := bpf.Need{Names: guard.Names(), Patterns: guard.Moves() || foldsOtherNames(plan), Reads: guard.Reads()}
	which, why := bpf.Choose(need, l.askHooks(need))
	switch which {
	case bpf.None:
		return
	case bpf.Kernel:
		l.mechanism = &PlannedMechanism{Name: byKernel}
		l.hooked = newHookedNames(plan)
		return
	}
	if reason := brokerAvailable(); reason != nil {
		l.mechanism = &PlannedMechanism{Name: byPlaceholders, Why: reason.Error()}
		return
	}
	l.mechanism = &PlannedMechanism{Name: byBroker, Why: why}
	l.guard = guard
}

// foldsOtherNames reports whether a rule counts in any spelling that its directory takes for the same name. Hooks know
// the letter case of the protected names alone.
func foldsOtherNames(plan *fsview.Plan) bool {
	return slices.ContainsFunc(plan.Absent, func(a fsview.Absent) bool { return a.Fold && !a.Mandatory })
}

// askHooks tells why no hooks can hold the rules, if only hooks are in question. A dry launch loads none.
func (l *launch) askHooks(need bpf.Need) error {
	hooks := &l.cmd.sandbox.hooks
	switch {
	case need != bpf.Need{Names: true}:
		return nil
	case l.withoutHooks != nil:
		return l.withoutHooks
	case l.dry:
		return hooks.supported()
	}
	return hooks.load()
}

// chooseNameFilter adds the filter that the mechanism needs.
func (l *launch) chooseNameFilter() {
	switch {
	case l.hooked != nil:
		l.filters = append(l.filters, seccomp.IoctlNames())
	case l.guard.Reads():
		l.filters = append(l.filters, seccomp.Opens())
	case l.guard.Names():
		l.filters = append(l.filters, seccomp.Names())
	}
}

// hookedNames are the rules of one command that hooks in the kernel hold.
type hookedNames struct {
	absent []fsview.Absent
	rules  []bpf.Rule // one for each of absent
	armed  *armedHooks
}

func newHookedNames(plan *fsview.Plan) *hookedNames {
	h := &hookedNames{}
	for _, a := range plan.Absent {
		if a.Write {
			h.absent = append(h.absent, a)
			h.rules = append(h.rules, bpf.Rule{Dir: a.Dir, Dev: a.ID.Dev, Ino: a.ID.Ino, Name: a.Name, Fold: a.Fold})
		}
	}
	return h
}

// hooksError says that hooks do not hold the rules of this one command. The start begins again with the broker.
type hooksError struct{ err error }

func (e *hooksError) Error() string {
	return "the kernel's hooks do not take the rules of this command: " + e.err.Error()
}

func (e *hooksError) Unwrap() error { return e.err }

// armNames makes ready what refuses names, for a sandbox that has its namespaces and no command yet.
func (l *launch) armNames(process *ns.Prepared) error {
	if l.brokered() {
		if err := process.AllowHands(); err != nil {
			return err
		}
	}
	if l.hooked == nil {
		return nil
	}
	namespace, err := process.UserNamespace()
	if err != nil {
		return &hooksError{err}
	}
	defer namespace.Close()
	if l.hooked.armed, err = l.cmd.sandbox.hooks.arm(namespace, l.hooked.rules, l.reportRefusal); err != nil {
		return &hooksError{err}
	}
	return nil
}

// holds are the descriptors that pid 1 keeps: the deny of a name must not end before the sandbox, even where srt is killed
// (FS-54).
func (l *launch) holds() (files []*os.File) {
	if l.held != nil {
		if f := l.held.session.File(); f != nil {
			files = append(files, f)
		}
	}
	if l.hooked != nil && l.hooked.armed != nil {
		files = append(files, l.hooked.armed.links...)
	}
	return files
}

// handedOver closes what only the start needed.
func (l *launch) handedOver() {
	if l.hooked != nil && l.hooked.armed != nil {
		l.hooked.armed.closeLinks()
	}
}

// giveBack ends what holds names for this launch. It is called when its sandbox has ended, or never came to be.
func (l *launch) giveBack() {
	errs := []error{l.endTrace(), l.held.release(), l.hooked.release(), l.socketRules.release()}
	if l.neighbours {
		// One of those who were there at the start may have been killed, and not have been all gone.
		for _, state := range l.private() {
			errs = append(errs, placeholder.Sweep(state))
		}
	}
	for _, err := range errs {
		if err != nil {
			l.cmd.sandbox.opts.warn(err.Error())
		}
	}
}

// release takes the rules away. It is called when the sandbox has ended.
func (h *hookedNames) release() error {
	if h == nil || h.armed == nil {
		return nil
	}
	armed := h.armed
	h.armed = nil
	if err := armed.release(); err != nil {
		return fmt.Errorf("take the rules of a command out of the kernel: %w", err)
	}
	return nil
}

// reportRefusal turns what a hook refused into an event.
func (l *launch) reportRefusal(r bpf.Refusal) {
	if r.Rule < 0 || r.Rule >= len(l.hooked.absent) {
		return // no rule of this command
	}
	a := l.hooked.absent[r.Rule]
	name := r.Name
	if name == "" {
		name = a.Name
	}
	call := r.Operation.String()
	if r.Operation == bpf.OpCreate {
		call = "open" // events name the system call (VIO-10)
	}
	rule := violation.RuleOf(a.Why)
	l.cmd.sandbox.report(violation.Event{PID: r.Pid, Process: r.Process, Operation: violation.Operation(call),
		Target: path.Join(a.Dir, name), Kind: violation.KindFileWrite, Creates: r.Operation == bpf.OpCreate, Rule: rule,
		Entry: entryAt(l.cfg, rule), CommandID: l.cmd.Key()})
}

// reports tells whether a hook reports the creation of a path.
func (h *hookedNames) reports(location string) bool {
	if h == nil {
		return false
	}
	dir, name := path.Split(location)
	return slices.ContainsFunc(h.absent, func(a fsview.Absent) bool {
		return path.Clean(dir) == a.Dir && (name == a.Name || a.Fold && strings.EqualFold(name, a.Name))
	})
}
