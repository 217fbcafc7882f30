package probe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Feature is one thing of the kernel's that srt uses. It is asked once in a process; all methods are safe for concurrent use.
type Feature struct {
	// Key is its name in SRT_WITHOUT, in "srt check --json" and in probe/hostfacts.
	Key string
	// Name is what it is called in sentences.
	Name string
	// Needs is the kernel version or configuration that brings it.
	Needs string
	// Since is that version, as major and minor.
	Since [2]int
	// Why says what srt has it for.
	Why string

	after []*Feature // without these it is not asked
	ask   func() (value int, found string, err error)

	once   sync.Once
	asked  atomic.Bool
	result Result
}

// Reason says why a feature is absent.
type Reason uint8

// The reasons.
const (
	// ReasonUnknown is for a failure of the question itself. It is the zero value.
	ReasonUnknown Reason = iota
	// ReasonKernel: the kernel lacks it.
	ReasonKernel
	// ReasonRefused: the kernel may have it, and something refuses it to this process.
	ReasonRefused
	// ReasonForced: SRT_WITHOUT takes it away.
	ReasonForced
)

// Result is what was found.
type Result struct {
	// Value is 1 for a feature that is there, its version where it has versions, and 0 for one that is not.
	Value int
	// Err is nil if it is there, else an *AbsentError.
	Err error
	// Found says what was found, in a few words.
	Found string
}

// Present tells whether the feature is there.
func (r Result) Present() bool { return r.Err == nil && r.Value > 0 }

// AbsentError says why a feature is not there.
type AbsentError struct {
	Feature *Feature
	Reason  Reason
	// Found is what was found, in a few words.
	Found string
	// Err is the system call's error or the failed step; nil if none told.
	Err error
}

func (e *AbsentError) Error() string {
	return fmt.Sprintf("this system gives no %s (%s)", e.Feature.Name, e.Found)
}

// Unwrap gives the system call's error.
func (e *AbsentError) Unwrap() error { return e.Err }

// Unasked tells whether an *AbsentError is of a feature that was not asked for because another one is missing.
func Unasked(err error) bool {
	a, ok := errors.AsType[*AbsentError](err)
	if !ok {
		return false
	}
	_, other := errors.AsType[*AbsentError](a.Err)
	return other
}

// Probe asks, unless that was done before.
func (f *Feature) Probe() Result {
	f.once.Do(func() {
		f.asked.Store(true)
		f.result = f.probe()
	})
	return f.result
}

// Asked tells whether that was done.
func (f *Feature) Asked() bool { return f.asked.Load() }

// Forks tells whether asking takes a process.
func (f *Feature) Forks() bool {
	return f == UserNamespaces || slices.Contains(f.after, UserNamespaces) || slices.Contains(f.after, MountNamespace)
}

// Err is Probe().Err.
func (f *Feature) Err() error { return f.Probe().Err }

// Withheld tells, without asking for the feature, whether SRT_WITHOUT takes it away: nil, or an *AbsentError. For what is tried out
// where it is used.
func (f *Feature) Withheld() error {
	limits, err := without()
	if err != nil {
		return f.absent(ReasonForced, err.Error(), err).Err
	}
	if limit, limited := limits[f.Key]; limited && limit == 0 {
		return f.absent(ReasonForced, "taken away by "+Variable, nil).Err
	}
	return nil
}

func (f *Feature) probe() Result {
	if a, ok := errors.AsType[*AbsentError](f.Withheld()); ok {
		return Result{Err: a, Found: a.Found}
	}
	limits, _ := without()
	limit, limited := limits[f.Key]
	for _, first := range f.after {
		if r := first.Probe(); !r.Present() {
			reason := ReasonUnknown
			if a, ok := errors.AsType[*AbsentError](r.Err); ok {
				reason = a.Reason
			}
			return f.absent(reason, "not asked without "+first.Key, r.Err)
		}
	}
	value, found, err := f.ask()
	if err != nil {
		if found == "" {
			found = strings.ReplaceAll(err.Error(), "\n", "; ") // joined errors have a line each
		}
		return f.absent(reasonOf(err), found, err)
	}
	if limited && value > limit {
		value, found = limit, fmt.Sprintf("limited to %d by %s", limit, Variable)
	}
	return Result{Value: value, Found: found}
}

func (f *Feature) absent(reason Reason, found string, err error) Result {
	return Result{Err: &AbsentError{f, reason, found, err}, Found: found}
}

// lacks are the errors of a kernel that does not know or have something; everything else with a number is a refusal.
var lacks = []syscall.Errno{unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL, unix.ENODEV, unix.ENOENT}

// refusal is an error that is a refusal whatever its number.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// lack is an error that is the kernel's lack whatever its number.
type lack struct{ error }

func (l lack) Unwrap() error { return l.error }

func reasonOf(err error) Reason {
	if _, ok := errors.AsType[refusal](err); ok {
		return ReasonRefused
	}
	if _, ok := errors.AsType[lack](err); ok {
		return ReasonKernel
	}
	errno, ok := errors.AsType[syscall.Errno](err)
	switch {
	case !ok:
		return ReasonUnknown
	case slices.Contains(lacks, errno):
		return ReasonKernel
	}
	return ReasonRefused
}

// errnoText is an error with the kernel's name of it, as people search for it.
func errnoText(err error) string {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err.Error()
	}
	return fmt.Sprintf("%v, %s", errno, unix.ErrnoName(errno))
}
