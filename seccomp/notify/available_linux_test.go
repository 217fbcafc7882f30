package notify

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// told is a kernel that answers as it is told. Its zero value is one where a listener can be had.
type told struct {
	noAction, noFlags, noSizes, noLoad syscall.Errno
	layout                             [3]uint16
	scope                              string
	scopeErr                           syscall.Errno
	underFilter, elsewhere             bool
	loads                              int
}

func orNil(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return os.NewSyscallError("seccomp", e)
}

func (k *told) action() error { return orNil(k.noAction) }
func (k *told) flags() error  { return orNil(k.noFlags) }
func (k *told) sizes() ([3]uint16, error) {
	if k.layout == [3]uint16{} {
		return [3]uint16{80, 24, 64}, orNil(k.noSizes)
	}
	return k.layout, orNil(k.noSizes)
}
func (k *told) ptraceScope() (string, error) { return k.scope, orNil(k.scopeErr) }
func (k *told) procElsewhere() bool          { return k.elsewhere }
func (k *told) filtered() bool               { return k.underFilter }
func (k *told) load() error                  { k.loads++; return orNil(k.noLoad) }

func TestAvailable_SaysWhyNot_FS54(t *testing.T) {
	for name, c := range map[string]struct {
		kernel told
		reason Reason
		errno  syscall.Errno
		text   string // part of the sentence
		loads  int
	}{
		"no user_notif":      {told{noAction: unix.EOPNOTSUPP}, ReasonKernel, unix.EOPNOTSUPP, "Linux 5.19", 0},
		"no seccomp(2)":      {told{noAction: unix.ENOSYS}, ReasonKernel, unix.ENOSYS, "Linux 5.19", 0},
		"no killable wait":   {told{noFlags: unix.EINVAL}, ReasonKernel, unix.EINVAL, "Linux 5.19", 0},
		"no sizes":           {told{noSizes: unix.EINVAL}, ReasonKernel, unix.EINVAL, "Linux 5.19", 0},
		"other sizes":        {told{layout: [3]uint16{88, 24, 64}}, ReasonLayout, 0, "newer srt", 0},
		"yama 3":             {told{scope: "3"}, ReasonYama, 0, "ptrace_scope", 0},
		"yama unreadable":    {told{scopeErr: unix.EACCES}, ReasonUnknown, unix.EACCES, "could not be found out", 0},
		"another listener":   {told{underFilter: true, noLoad: unix.EBUSY}, ReasonListener, unix.EBUSY, "one listener only", 1},
		"filters refused":    {told{underFilter: true, noLoad: unix.EPERM}, ReasonRefused, unix.EPERM, "profile", 1},
		"/proc of others":    {told{elsewhere: true}, ReasonProc, 0, "--mount-proc", 0},
		"seccomp(2) refused": {told{underFilter: true, noAction: unix.EPERM}, ReasonRefused, unix.EPERM, "profile", 0},
	} {
		t.Run(name, func(t *testing.T) {
			err := available(&c.kernel)
			var got *UnavailableError
			if !errors.As(err, &got) || got.Reason != c.reason || !errors.Is(err, ErrUnavailable) {
				t.Fatalf("got %#v, want reason %d", err, c.reason)
			}
			if c.errno != 0 && !errors.Is(err, c.errno) {
				t.Errorf("%v does not wrap %v", err, c.errno)
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("%q does not contain %q", err, c.text)
			}
			if c.kernel.loads != c.loads {
				t.Errorf("a filter was loaded %d times, want %d", c.kernel.loads, c.loads)
			}
		})
	}
}

func TestAvailable_WhereNothingStandsAgainstIt(t *testing.T) {
	for name, c := range map[string]struct {
		kernel told
		loads  int
	}{
		"no yama":               {told{scopeErr: unix.ENOENT}, 0},
		"yama 2":                {told{scope: "2"}, 0},
		"filters, no listeners": {told{scope: "0", underFilter: true}, 1},
	} {
		if err := available(&c.kernel); err != nil || c.kernel.loads != c.loads {
			t.Errorf("%s: %v, a filter loaded %d times; want nil, %d", name, err, c.kernel.loads, c.loads)
		}
	}
}

func TestReasons_EachHasItsSentence(t *testing.T) {
	seen := map[string]bool{}
	for r := range reasons {
		text := (&UnavailableError{Reason: Reason(r)}).Error()
		if text == "" || seen[text] {
			t.Errorf("reason %d says %q", r, text)
		}
		seen[text] = true
	}
	if got := (&UnavailableError{Reason: 200}).Error(); got != reasons[ReasonUnknown] {
		t.Errorf("an unheard-of reason says %q", got)
	}
}

// The real kernel, asked by processes that stand under nothing, under filters, and under another listener.
func TestAvailable_OnThisKernel_FS54(t *testing.T) {
	for _, c := range []struct{ outer, want string }{
		{"", "nil"},
		{"allow", "nil"},
		{"listener", "4"},
		{"no-seccomp", "5"},
	} {
		out, err := child(t, modeAvailable, c.outer).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("under %q: got %q (%v), want %q", c.outer, got, err, c.want)
		}
	}
}

// The probe of a filtered process leaves none of its threads under another filter, and no descriptor open.
func TestAvailable_LeavesNothingBehind(t *testing.T) {
	out, err := child(t, modeLeavesNothing, "allow").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func BenchmarkAvailable(b *testing.B) {
	for b.Loop() {
		if err := Available(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAvailableUnderAFilter is the part that a process under filters pays in addition.
func BenchmarkAvailableUnderAFilter(b *testing.B) {
	for b.Loop() {
		if err := (thisKernel{}).load(); err != nil {
			b.Fatal(err)
		}
	}
}
