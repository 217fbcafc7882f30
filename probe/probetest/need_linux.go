package probetest

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/probe"
)

// Need skips a test where a feature is missing for a good reason: the kernel is older than the feature, something around this
// process refuses it, or SRT_WITHOUT takes it away. On a kernel that is new enough a missing feature is a fault of the kernel's
// configuration, or of the question, and fails the test: a skip would hide it.
func Need(t testing.TB, f *probe.Feature) { NeedVersion(t, f, 1) }

// NeedVersion does so for a version of a feature: an ABI of Landlock.
func NeedVersion(t testing.TB, f *probe.Feature, version int) {
	t.Helper()
	r := f.Probe()
	if r.Value >= version {
		return
	}
	text := fmt.Sprintf("got %s (version %d), want version %d (%s)", r.Found, r.Value, version, f.Needs)
	if excused(f, r, version, release()) {
		t.Skip(f.Name + ": " + text)
	}
	t.Fatalf("%s: %s; this kernel should have it", f.Name, text)
}

// landlockSince are the kernels that brought the versions of Landlock (landlock(7)), the first one first.
var landlockSince = [][2]int{{5, 13}, {5, 19}, {6, 2}, {6, 7}, {6, 10}, {6, 12}, {6, 15}}

// excused tells whether a feature may be missing.
func excused(f *probe.Feature, r probe.Result, version int, kernel [2]int) bool {
	since := f.Since
	if f == probe.Landlock && version <= len(landlockSince) {
		since = landlockSince[version-1]
	}
	if older(kernel, since) {
		return true
	}
	if a, ok := errors.AsType[*probe.AbsentError](r.Err); ok {
		return a.Reason == probe.ReasonRefused || a.Reason == probe.ReasonForced
	}
	forced, _ := probe.Forced()
	return forced // a version is limited
}

func older(kernel, since [2]int) bool {
	return kernel[0] < since[0] || kernel[0] == since[0] && kernel[1] < since[1]
}

// release is the version of the running kernel. One that cannot be told counts as new.
func release() [2]int {
	var name unix.Utsname
	v := [2]int{1 << 30, 0}
	if unix.Uname(&name) != nil {
		return v
	}
	var major, minor int
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); n == 2 {
		v = [2]int{major, minor}
	}
	return v
}
