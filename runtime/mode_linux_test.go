package runtime

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/probe/probetest"
)

// TestModeNeeds_AreProbed: what modes need has a probe, and the versions are fsview's.
func TestModeNeeds_AreProbed(t *testing.T) {
	keys := map[string]bool{}
	for _, f := range probe.All() {
		keys[f.Key] = true
	}
	for _, m := range modeNeeds {
		for _, n := range m.needs {
			if !keys[n.key] {
				t.Errorf("mode %s needs %s, which nobody asks for", m.mode, n.key)
			}
		}
	}
	if leastLandlock != fsview.MinLandlockABI || scopeLandlock != fsview.ScopeABI {
		t.Error("the versions of Landlock are others")
	}
}

// TestRefusedByKernel: a start is begun again for what a lesser mode may avoid, and not for a fault of its own.
func TestRefusedByKernel(t *testing.T) {
	for _, e := range []syscall.Errno{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.ENOSPC, unix.EUSERS, unix.EINVAL} {
		if !refusedByKernel(errors.Join(errors.New("else"), &ns.StepError{Op: "make the namespaces (clone)", Err: e})) {
			t.Errorf("%v is no refusal", e)
		}
	}
	for _, err := range []error{nil, os.ErrNotExist, unix.EPERM, &ns.StepError{Op: "find unchanged", Err: unix.ESTALE},
		&ns.StepError{Op: "open", Err: unix.EMFILE}, &ns.ExecError{Name: "x", Err: unix.ENOENT}} {
		if refusedByKernel(err) {
			t.Errorf("%v is a refusal", err)
		}
	}
}

// TestLesserMode_OnThisSystem: where everything is there, a refusal is no reason for another mode.
func TestLesserMode_OnThisSystem(t *testing.T) {
	for _, f := range []*probe.Feature{probe.FreshProc, probe.NetNamespace, probe.MountSetattr, probe.Openat2, probe.CgroupNamespace} {
		probetest.Need(t, f)
	}
	failure := &ns.StepError{Op: "mount on", Subject: "/x", Err: unix.EPERM}
	if m, another, err := lesserMode(ModeFull, failure, true); m != ModeFull || another || err != nil {
		t.Errorf("%s, %v, %v", m, another, err)
	}
	if fullRefused.Load() {
		t.Error("mode full is given up for the process")
	}
}

// TestFeaturesMatchProbes: the report has them all, in their order.
func TestFeaturesMatchProbes(t *testing.T) {
	for i, f := range features() {
		want := probe.All()[i]
		if f.Key != want.Key || f.Present != want.Probe().Present() || f.Present && f.Value != want.Probe().Value {
			t.Errorf("%+v, want %s", f, want.Key)
		}
	}
}
