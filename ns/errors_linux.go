package ns

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Steps that every start takes, beside the set-up program's own.
const (
	fixedStreams = iota
	fixedCloseRange
	fixedGo
	fixedHold
	fixedSignalFD
	fixedReady
	fixedFork
	fixedCapset
	fixedTerminal
	fixedNull
	fixedLimit
	fixedSignals
	fixedHand
	fixedScope
	fixedReaper
	fixedUndumpable
	fixedBegin
	fixedRestrict
	fixedSeparate
)

var fixedSteps = [...]string{
	fixedStreams:    "hand over the standard streams",
	fixedCloseRange: "close the inherited descriptors (close_range)",
	fixedGo:         "wait for the launch program",
	fixedHold:       "take the descriptors that the sandbox holds",
	fixedSignalFD:   "watch for ended processes (signalfd)",
	fixedReady:      "report that the set-up is done",
	fixedFork:       "fork the command",
	fixedCapset:     "drop the capabilities of pid 1 (capset)",
	fixedTerminal:   "give the command its place on the terminal",
	fixedNull:       "open the null device in the place of a descriptor that stays with the caller",
	fixedLimit:      "restore the limits of open files and core files",
	fixedSignals:    "reset the handlers and the mask of signals",
	fixedHand:       "hand over the descriptors of a hand",
	fixedScope:      "keep signals within the sandbox (Landlock, scope of signals)",
	fixedReaper:     "have the sandbox's orphans adopted (PR_SET_CHILD_SUBREAPER)",
	fixedUndumpable: "forbid tracing of the supervisor",
	fixedBegin:      "wait for the word to start the command",
	fixedRestrict:   "enforce the command's own Landlock ruleset",
	fixedSeparate:   "prove that the command cannot signal its supervisor",
}

// ErrHostGone is the cause when the two sides lost each other during a start.
var ErrHostGone = errors.New("the new process ended without a word")

// StepError says which step between clone and exec failed. The command did not run.
type StepError struct {
	// Op and Subject name the step: "mount read-only" and "/srv/x". Subject may be empty.
	Op, Subject string
	// Err is the system call's error.
	Err error
	// Cause is a sentence on what is the likely reason and what to do; empty if nothing is known.
	Cause string
}

func (e *StepError) Error() string {
	s := "cannot " + e.Op
	if e.Subject != "" {
		s += " " + e.Subject
	}
	s += fmt.Sprintf(": %s", errnoText(e.Err))
	if e.Cause != "" {
		s += ". " + e.Cause
	}
	return s
}

// Unwrap gives the system call's error.
func (e *StepError) Unwrap() error { return e.Err }

// errnoText is the kernel's name of an error with its description, as people search for it.
func errnoText(err error) string {
	var n syscall.Errno
	if errors.As(err, &n) {
		if name := unix.ErrnoName(n); name != "" {
			return fmt.Sprintf("%v (%s)", err, name)
		}
	}
	return err.Error()
}

// ExecError says that none of the candidates could be executed. Err is ENOENT when there is none, else the error of the
// one that counts, as execvp(3) reports it.
type ExecError struct {
	Name string
	Err  error
}

func (e *ExecError) Error() string {
	switch {
	case errors.Is(e.Err, syscall.ENOENT):
		return e.Name + ": command not found"
	default:
		return e.Name + ": cannot execute: " + e.Err.Error()
	}
}

// Unwrap gives the system call's error.
func (e *ExecError) Unwrap() error { return e.Err }
