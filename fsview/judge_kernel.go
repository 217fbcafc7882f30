package fsview

import (
	"strings"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// Names of the rules that hold in every sandbox (FS-47).
const (
	rulePrivateDev  = "private /dev"
	rulePrivateProc = "private /proc"
	ruleKernelState = "kernel state"
)

// judgeKernel judges what lies in /dev, /proc and /sys, as the tables of system.go and the late steps of the plan make
// them. It is not decided where the plan's steps say all: what is hidden in /dev, what shows again of /sys.
func (j *Judge) judgeKernel(path string, a Access) (v Judgement, decided bool) {
	if k := kernelPathOf(path); k != nil && (k.how == hidden || a != AccessRead) {
		return kernelJudgement(k), true
	}
	if s := j.covering(path); s != nil && inKernelTree(s.Path) {
		// Landlock grants nothing beneath what a step shows again, and nothing there is the host's to change but /sys.
		return Judgement{}, false
	}
	switch {
	case policy.Covers("/sys", path):
		return refuseIf(a != AccessRead, ruleKernelState, "/sys", "the kernel's own file system is shown read-only"), true
	case policy.Covers("/proc", path):
		return judgeProc(path, a), true
	}
	return judgeDev(path, a), true
}

// kernelPathOf is the deepest line of the table that covers a path, or nil.
func kernelPathOf(path string) (found *kernelPath) {
	for i := range kernelPaths {
		if k := &kernelPaths[i]; policy.Covers(k.path, path) && (found == nil || len(k.path) > len(found.path)) {
			found = k
		}
	}
	return found
}

func kernelJudgement(k *kernelPath) Judgement {
	v := Judgement{Denied: true, Rule: ruleKernelState, Path: k.path, Reason: "it is kernel state, which is shown read-only in every sandbox"}
	if k.how == hidden {
		v.Reason, v.Substitute = "it is kernel state, which is hidden in every sandbox", true
	}
	return v
}

// judgeProc: entries of processes are as the kernel gives them, for the processes of the sandbox alone; the others are the
// kernel's, shared with every /proc of the machine (freshProc).
func judgeProc(path string, a Access) Judgement {
	name, _, _ := strings.Cut(strings.TrimPrefix(tail("/proc", path), "/"), "/")
	ofProcess := strings.Trim(name, "0123456789") == "" || name == "self" || name == "thread-self"
	switch {
	case a == AccessRead, a == AccessWrite && ofProcess && name != "":
		return Judgement{}
	case a == AccessWrite:
		return refuse(ruleKernelState, path, "it is kernel state, which is shown read-only in every sandbox")
	}
	return refuse(rulePrivateProc, "/proc", "names there are the kernel's to make and to remove")
}

// judgeDev: a directory in memory that holds a few devices, and beneath it terminals and /dev/shm, both the sandbox's own.
func judgeDev(path string, a Access) Judgement {
	name, _, deep := strings.Cut(strings.TrimPrefix(tail("/dev", path), "/"), "/")
	const text = "the sandbox has a /dev of its own, with "
	switch {
	case name == "shm" && (deep || a != AccessRemove):
		return Judgement{}
	case name == "pts", name == "":
		return refuseIf(a == AccessCreate || a == AccessRemove || a == AccessWrite && !deep, rulePrivateDev, "/dev", text+"names that cannot be changed")
	case !deep && ownDevice(name):
		return refuseIf(a == AccessCreate || a == AccessRemove, rulePrivateDev, "/dev", text+"names that cannot be changed")
	}
	v := refuse(rulePrivateDev, "/dev", text+"a few devices that show nothing of the host")
	v.Substitute = true
	return v
}

// ownDevice tells whether the sandbox's /dev holds a name.
func ownDevice(name string) bool {
	for i := range devNodes {
		if devNodes[i].name == name {
			return true
		}
	}
	for i := range devLinks {
		if devLinks[i][0] == name {
			return true
		}
	}
	return false
}

func refuse(rule, path, reason string) Judgement {
	return Judgement{Denied: true, Rule: rule, Path: path, Reason: reason}
}

func refuseIf(denied bool, rule, path, reason string) Judgement {
	if !denied {
		return Judgement{}
	}
	return refuse(rule, path, reason)
}
