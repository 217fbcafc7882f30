package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// Check says what srt needs of this system and what of it is missing (LIB-9), and in which mode commands are confined here. It may
// be called before any session, from any goroutine, with a configuration or without (nil), and changes nothing: on Linux it makes
// the namespaces of a sandbox, one kind after another, and takes them away.
//
// The error is a *config.Error for an invalid configuration, and ctx's cause when ctx has ended. That commands cannot be
// confined is no error of Check; Report.Err is.
func Check(ctx context.Context, cfg *config.Config) (Report, error) {
	if err := ended(ctx); err != nil {
		return Report{}, err
	}
	if cfg != nil {
		if err := cfg.Validate(); err != nil {
			return Report{}, err
		}
	}
	r := Report{Mode: ModeNone, Reasons: []string{}, Features: []Feature{}, Errors: []string{}, Warnings: []string{}}
	if err := checkPlatform(); err != nil {
		r.fail(err)
	}
	r.check(cfg) // what is missing is told all the same
	if cfg != nil {
		r.Warnings = append(r.Warnings, exposed(cfg)...)
	}
	return r, nil
}

// fail adds a reason why commands cannot be confined.
func (r *Report) fail(err error) {
	r.reasons = append(r.reasons, err)
	r.Errors = append(r.Errors, err.Error())
}

// exposed says that the caller's own program lies where commands may write (LIB-10). It need not be said at each start: the
// file itself is kept from every command (FS-51).
func exposed(cfg *config.Config) []string {
	exe, err := os.Executable()
	if err != nil || cfg.Filesystem.Disabled {
		return nil
	}
	in := pathInput(cfg)
	if in.Cwd, in.Home, err = surroundings("", os.Environ()); err != nil {
		return nil // no command can be launched from here
	}
	rules, err := policy.ResolvePaths(in)
	if err != nil || !policy.MayWrite(withoutLinks(exe), in.Home, rules, withoutLinks) {
		return nil
	}
	return []string{fmt.Sprintf("the program that runs the sandbox, %s, lies where commands may write. They cannot change that file, but they "+
		"can change what lies beside it, and what it reads of that counts outside of any sandbox. Move it, or list its directory in "+
		"filesystem.denyWrite", exe)}
}

// Report is what srt needs of the system it runs on, and what of it is missing (LIB-9). The zero value says that nothing is
// missing, and nothing of modes.
type Report struct {
	// Mode is the best one that this system gives, and so the mode of commands under settings that allow it. Reasons say, a
	// sentence each, why it is no better one, and Remedy what would give a better one; nil if there is none, or none is known.
	Mode    Mode     `json:"mode"`
	Reasons []string `json:"reasons"`
	Remedy  *Remedy  `json:"remedy,omitempty"`
	// Features are what was found of the system's features that srt uses, whether it needs them or not.
	Features []Feature `json:"features"`
	// Errors are why commands cannot be confined here, a sentence each.
	Errors []string `json:"errors"`
	// Warnings are what commands would have less of, a sentence each.
	Warnings []string `json:"warnings"`
	// ReinstallRequired and LoopbackMismatch are about the installation on Windows, and empty elsewhere.
	ReinstallRequired string `json:"reinstallRequired,omitempty"`
	LoopbackMismatch  string `json:"loopbackMismatch,omitempty"`

	reasons []error // that Errors are the texts of
}

// Err is what New would return for these errors: a *DependencyError, nil if there are none.
func (r Report) Err() error {
	if len(r.Errors) == 0 {
		return nil
	}
	return &DependencyError{r}
}

// DependencyError says that commands cannot be confined here (LIB-3). It matches ErrUnsupportedPlatform where that is why.
type DependencyError struct{ Report }

// dependencyError is the error of a start that fails for one reason.
func dependencyError(reason error) error {
	r := Report{Mode: ModeNone, Reasons: []string{}, Features: []Feature{}, Errors: []string{}, Warnings: []string{}}
	r.fail(reason)
	if e, ok := errors.AsType[*ModeError](reason); ok {
		r.Mode, r.Reasons = e.Possible, e.Reasons
		if !e.Remedy.IsZero() {
			r.Remedy = &e.Remedy
		}
	}
	return &DependencyError{r}
}

// Error is the text of LIB-3; for an unsupported platform that alone (LIB-9).
func (e *DependencyError) Error() string {
	text := strings.Join(e.Errors, ", ")
	if errors.Is(e, ErrUnsupportedPlatform) {
		return text
	}
	return "Sandbox dependencies not available: " + text
}

// Unwrap gives the errors that Errors are the texts of.
func (e *DependencyError) Unwrap() []error { return e.reasons }
