package fsview

import (
	"syscall"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// ConfinedJudge answers for a plan that is held without mounts. What mounts, Landlock and the broker answer together in other
// modes it answers alone, by location, with the same errors. It has what a Guard has as well. It is immutable and safe for
// concurrent use, and makes no system call.
type ConfinedJudge struct {
	*Guard
	confined *Confined
	judge    *Judge
	links    []*Step // reveals under the name of a re-allowed link
}

// Judge makes the judge. It costs a look at each step and rule of the plan.
func (c *Confined) Judge() *ConfinedJudge {
	judge := NewJudge(c.plan)
	j := &ConfinedJudge{Guard: judge.guard, confined: c, judge: judge}
	for i := range c.plan.Steps {
		if s := &c.plan.Steps[i]; s.Kind == Reveal && s.Source != s.Path {
			j.links = append(j.links, s)
		}
	}
	return j
}

// Change judges a change: of what is at a location (AccessWrite, its attributes included), the making of a name, or its
// removal. The location is absolute, as the kernel names it, without links; nothing need be there. why is the rule that
// refuses it, errno the answer, 0 where it is allowed.
func (j *ConfinedJudge) Change(location string, a Access) (why string, errno syscall.Errno) {
	if inKernelTree(location) {
		return j.changeKernel(location, a)
	}
	if s := j.linked(location); s != nil {
		why, _ = j.judge.causes.split(s.Why)
		return why, syscall.EROFS
	}
	v := j.judge.Judge(location, a)
	if !v.Denied {
		return "", 0
	}
	return v.Rule, j.refusal(location, a)
}

// refusal is the error of a change that is denied.
func (j *ConfinedJudge) refusal(location string, a Access) syscall.Errno {
	s := j.judge.covering(location)
	inside := a == AccessRemove || a == AccessCreate && j.judge.steps[location] == nil
	if inside {
		dir := above(location)
		if dir == "" {
			dir = "/"
		}
		s = j.judge.covering(dir)
	}
	switch z := j.judge.zone(s); {
	case location == "/" && a == AccessRemove:
		return syscall.EBUSY // rmdir(2)
	case z == zoneReadOnly:
		return syscall.EROFS
	case z == zoneWritable && a == AccessRemove:
		return syscall.EBUSY // a mount point, or a pin (FS-41, FS-42)
	case z == zoneWritable && a == AccessCreate:
		return syscall.EROFS // as the broker says of names that must not be made
	case z != zoneWritable && !s.conceals():
		return syscall.EROFS
	}
	return syscall.EACCES
}

// changeKernel judges a change in /dev, /proc or /sys, which are the host's own here. Openings of devices are not asked about:
// the command's Landlock domain names the ones that may be used (DeviceRules).
func (j *ConfinedJudge) changeKernel(location string, a Access) (why string, errno syscall.Errno) {
	switch {
	case j.confined.shm && policy.Covers(sharedMemory, location) && (location != sharedMemory || a == AccessCreate):
		return "", 0
	case policy.Covers("/dev", location) && a != AccessWrite:
		return rulePrivateDev, syscall.EROFS
	case policy.Covers("/dev", location):
		return rulePrivateDev, syscall.EACCES
	case policy.Covers("/proc", location) && a == AccessWrite && kernelPathOf(location) == nil:
		return rulePrivateProc, syscall.EACCES
	}
	return ruleKernelState, syscall.EROFS
}

// linked is the step that shows an object under the name of a re-allowed link elsewhere (FS-9), and with it that under its
// own. It is read-only.
func (j *ConfinedJudge) linked(location string) *Step {
	for _, s := range j.links {
		if policy.Covers(s.Source, location) && j.conceals(location) {
			return s
		}
	}
	return nil
}

// conceals reports whether the plan hides what lies at a location.
func (j *ConfinedJudge) conceals(location string) bool {
	s := j.judge.covering(location)
	return s != nil && s.conceals()
}

// Reads reports whether every opening has to be judged. That is so as well where something is hidden that Landlock cannot hide
// (files of srt's own in a place that can be written to).
func (j *ConfinedJudge) Reads() bool { return j.confined.judged || j.Guard.Reads() }

// Names reports whether calls that create names have to be judged. All of them are.
func (j *ConfinedJudge) Names() bool { return true }

// Open judges the opening of what lies at a location, as Guard.Open does, and besides by what mounts hide elsewhere.
func (j *ConfinedJudge) Open(location string) (why string, denied bool) {
	switch {
	case inKernelTree(location):
		if k := kernelPathOf(location); k != nil && k.how == hidden {
			return ruleKernelState, true
		}
	case j.linked(location) != nil:
		return "", false
	case j.conceals(location):
		why, _ = j.judge.causes.split(j.judge.covering(location).Why)
		return why, true
	}
	return j.Guard.Open(location)
}

// Leave judges what takes an object away from a location, as Guard.Leave does.
func (j *ConfinedJudge) Leave(location string) (why string, denied bool) { return j.Open(location) }
