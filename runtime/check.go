package runtime

import (
	"errors"
	"strings"
)

// Report is what srt needs of the system it runs on, and what of it is missing (LIB-9). The zero value says that all is there.
type Report struct {
	// Errors are why commands cannot be confined here, a sentence each.
	Errors []string `json:"errors"`
	// Warnings are what commands would have less of, a sentence each.
	Warnings []string `json:"warnings"`
	// ReinstallRequired and LoopbackMismatch are about the installation on Windows, and empty elsewhere.
	ReinstallRequired string `json:"reinstallRequired,omitempty"`
	LoopbackMismatch  string `json:"loopbackMismatch,omitempty"`
}

// DependencyError says that commands cannot be confined here (LIB-3). It matches ErrUnsupportedPlatform where that is why.
type DependencyError struct {
	Report
	reasons []error
}

func newDependencyError(reasons ...error) *DependencyError {
	e := &DependencyError{reasons: reasons}
	for _, r := range reasons {
		e.Errors = append(e.Errors, r.Error())
	}
	return e
}

// Error is the text of LIB-3; for an unsupported platform that alone.
func (e *DependencyError) Error() string {
	text := strings.Join(e.Errors, ", ")
	if errors.Is(e, ErrUnsupportedPlatform) {
		return text
	}
	return "Sandbox dependencies not available: " + text
}

// Unwrap gives the errors that Errors are the texts of.
func (e *DependencyError) Unwrap() []error { return e.reasons }
