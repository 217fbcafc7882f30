package fsview

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// TestFreshProcRefused: only what a masked /proc leads to counts, so that no other failure has a start go on with less.
func TestFreshProcRefused(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&ns.StepError{Op: mountProc, Subject: "/proc", Err: unix.EPERM}, true},
		{fmt.Errorf("start: %w", &ns.StepError{Op: mountProc, Subject: "/proc", Err: unix.EPERM}), true},
		{&ns.StepError{Op: "open", Subject: ns.UserNamespaceLimit, Err: unix.EROFS}, true},
		{&ns.StepError{Op: "open", Subject: ns.UserNamespaceLimit, Err: unix.EACCES}, false},
		{&ns.StepError{Op: mountProc, Subject: "/proc", Err: unix.ENOSYS}, false},
		{&ns.StepError{Op: "mount a tmpfs file system for", Subject: "/proc", Err: unix.EPERM}, false},
		{errors.New("another"), false},
		{nil, false},
	} {
		if got := FreshProcRefused(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
