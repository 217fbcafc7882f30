package runtime

import (
	"fmt"
	"slices"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/seccomp"
)

// explain turns a compiled launch into text.
func (c *Cmd) explain() (*Explanation, error) {
	h, err := readIdentity()
	if err != nil {
		return nil, err
	}
	how, told, err := c.dryAttempt()
	if err != nil {
		return nil, err
	}
	l, err := c.prepare(h, how)
	if err != nil {
		return nil, err
	}
	e := &Explanation{Mode: l.mode.String(), Directory: l.plan.Dir, Environment: l.env, Warnings: slices.Concat(told, c.masks.warnings, l.plan.Warnings), Notes: l.plan.Notes}
	if !l.plan.Unrestricted && !l.plan.RootWritable {
		e.Mounts = append(e.Mounts, PlannedMount{Kind: fsview.ReadOnly.String(), Path: "/", Why: "everything that no write root covers (FS-48)"})
	}
	late := []PlannedMount{}
	for _, s := range l.plan.Steps {
		m := PlannedMount{Kind: s.Kind.String(), Path: s.Path, Source: s.Source, Why: s.Why}
		if s.Late {
			late = append(late, m)
			continue
		}
		e.Mounts = append(e.Mounts, m)
	}
	for _, m := range fsview.SystemMounts() {
		e.Mounts = append(e.Mounts, PlannedMount{Kind: m.Kind, Path: m.Path, Why: m.Why})
		if m.Path == "/proc" {
			e.Mounts = append(e.Mounts, l.plannedProcEntries()...)
		}
	}
	e.Mounts = append(e.Mounts, late...)
	e.LaterBy = l.mechanism
	for _, r := range l.plan.LaterRules() {
		e.Later = append(e.Later, PlannedLater{r.Kind, r.Path, r.Why})
	}
	e.Landlock = l.plannedRules()
	loaded := map[string]bool{}
	for _, f := range l.filters {
		loaded[f.Name] = true
	}
	for _, r := range seccomp.Rules() {
		if loaded[r.Filter] {
			e.Filters = append(e.Filters, PlannedCall{r.Filter, r.Syscall, r.Condition, r.Action, r.Why})
		}
	}
	for _, port := range []int{httpPort, socksPort} {
		e.Network.Proxies = append(e.Network.Proxies, fmt.Sprintf("localhost:%d", port))
	}
	n := &e.Network
	n.Captured, n.UnixSockets, n.AllUnixSockets = l.captured(), list(l.sockets), l.cfg.Network.AllowAllUnixSockets
	if !n.Captured {
		n.NotCaptured = l.uncaptured.Error()
	}
	return e, nil
}

// plannedRules are the Landlock rules. Beneath something hidden they are about what stands in for it.
func (l *launch) plannedRules() (list []PlannedRule) {
	if l.cfg.AllowNestedUserNamespaces {
		return nil
	}
	hides := map[string]bool{}
	for i := range l.plan.Steps {
		hides[l.plan.Steps[i].Path] = l.plan.Steps[i].Kind == fsview.HideDir
	}
	for _, r := range l.plan.LandlockRules() {
		rule := PlannedRule{Path: r.Path, Rights: r.Right.String()}
		if hides[r.Path] {
			rule.Note = "in the directory in memory that hides it"
		}
		list = append(list, rule)
	}
	return list
}

// plannedProcEntries are the read-only mounts that root's /proc has.
func (l *launch) plannedProcEntries() (list []PlannedMount) {
	for _, name := range l.host.procEntries {
		list = append(list, PlannedMount{Kind: fsview.ReadOnly.String(), Path: "/proc/" + name,
			Why: "not of a process: shared with the host's /proc"})
	}
	return list
}
