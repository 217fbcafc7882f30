package bpf

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAtLeast(t *testing.T) {
	tests := []struct {
		release string
		want    bool
	}{
		{"6.2.0", true}, {"6.2", true}, {"6.18.4-arch1", true}, {"7.0-rc1", true}, {"10.0", true}, {"6.10", true},
		{"6.1.99", false}, {"5.19.0", false}, {"4.18.0-553.el8", false}, {"", false}, {"6", false}, {"6.", false}, {"6-2", false},
		{"x.y", false}, {"99999999999999999999.0", false},
	}
	for _, tt := range tests {
		if got := atLeast(tt.release, 6, 2); got != tt.want {
			t.Errorf("%q: %v", tt.release, got)
		}
	}
}

func TestInList(t *testing.T) {
	for list, want := range map[string]bool{"lockdown,capability,landlock,bpf\n": true, "bpf": true, "": false, "nobpf,bpf2": false} {
		if got := inList(list, "bpf"); got != want {
			t.Errorf("%q: %v", list, got)
		}
	}
}

// FS-54: who may not load programs is told so, in whatever way the rights are missing.
func TestSupported_Capabilities(t *testing.T) {
	if os.Getuid() != 0 {
		if err := Supported(); !errors.Is(err, ErrNoCapability) {
			t.Errorf("an ordinary user: %v", err)
		}
		if m, why := Choose(Need{Names: true}, Supported()); m != Broker || why == "" {
			t.Errorf("an ordinary user gets %v, %q", m, why)
		}
		if err := TracingSupported(); !errors.Is(err, ErrNoCapability) || strings.Contains(err.Error(), "LSM") {
			t.Errorf("an ordinary user: %v", err)
		}
		return
	}
	user := childCommand(0, 0)
	user.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	bounded := childCommand(0, unix.CLONE_NEWUSER)
	for what, cmd := range map[string]*child{"an ordinary user": start(t, user), "root of a user namespace": start(t, bounded)} {
		for _, question := range []string{"supported", "tracing"} {
			if got := cmd.do(question); got != ErrNoCapability.Error() {
				t.Errorf("%s, %s: %s", what, question, got)
			}
		}
	}
}

// The answer is one of the typed reasons, and where it is none of rights, the prerequisites agree.
func TestSupported_IsTyped(t *testing.T) {
	err := Supported()
	if err == nil {
		return // TestHooks_FS30 uses it
	}
	var typed *Unsupported
	if !errors.As(err, &typed) {
		t.Fatalf("%v", err)
	}
	if before := prerequisites(); errors.Is(typed.Reason, ErrRefused) != (before == nil) && !errors.Is(typed.Reason, ErrNoCapability) {
		t.Errorf("%v, yet the prerequisites say %v", err, before)
	}
}
