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
	e.Mounts = l.plannedMounts()
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
	e.Network.Proxies = l.plannedProxies()
	n := &e.Network
	n.Captured, n.UnixSockets, n.AllUnixSockets = l.captured(), list(l.sockets), l.cfg.Network.AllowAllUnixSockets
	if !n.Captured {
		n.NotCaptured = l.uncaptured.Error()
	}
	return e, nil
}

// plannedMounts are the parts of what the command sees, in the order of their making. In mode confined nothing is mounted: what the
// parts say is held by Landlock and the broker.
func (l *launch) plannedMounts() (list []PlannedMount) {
	if !l.plan.Unrestricted && !l.plan.RootWritable {
		list = append(list, PlannedMount{Kind: fsview.ReadOnly.String(), Path: "/", Why: "everything that no write root covers (FS-48)"})
	}
	var late []PlannedMount
	for _, s := range l.plan.Steps {
		m := PlannedMount{Kind: s.Kind.String(), Path: s.Path, Source: s.Source, Why: s.Why}
		if s.Late {
			late = append(late, m)
			continue
		}
		list = append(list, m)
	}
	for _, m := range fsview.SystemMounts() {
		if l.confines() {
			break // /dev, /proc and /sys are the host's: what may be done there is among the Landlock rules
		}
		list = append(list, PlannedMount{Kind: m.Kind, Path: m.Path, Why: m.Why})
		if m.Path == "/proc" {
			list = append(list, l.plannedProcEntries()...)
		}
	}
	list = append(list, late...)
	return list
}

// plannedRules are the Landlock rules. Beneath something hidden they are about what stands in for it.
func (l *launch) plannedRules() (list []PlannedRule) {
	if l.confines() {
		return l.confinedRules()
	}
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

// plannedProxies are where the command finds the proxies.
func (l *launch) plannedProxies() (list []string) {
	if l.confines() {
		return []string{"a port of localhost that is chosen for each command"}
	}
	for _, port := range []int{httpPort, socksPort} {
		list = append(list, fmt.Sprintf("localhost:%d", port))
	}
	return list
}

// confinedRules are the Landlock rules of mode confined: those of the command, and those of the hands that perform its changes.
func (l *launch) confinedRules() (list []PlannedRule) {
	for _, r := range l.view.ReadRules() {
		list = append(list, PlannedRule{Path: r.Path, Rights: r.Right.String()})
	}
	for _, r := range fsview.DeviceRules() {
		list = append(list, PlannedRule{Path: r.Path, Rights: "read, write and control"})
	}
	for _, r := range l.view.WriteRules() {
		list = append(list, PlannedRule{Path: r.Path, Rights: "change", Note: "by srt alone, which judges each change"})
	}
	return list
}
