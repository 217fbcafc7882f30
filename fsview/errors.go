package fsview

import (
	"errors"
	"fmt"
)

// The reasons for which a deny entry cannot be honoured. They are found in an *EntryError with errors.Is.
var (
	ErrUninspected   = errors.New("the path cannot be inspected")
	ErrPerProcess    = errors.New("the path differs for every process")
	ErrMoved         = errors.New("the path was renamed while the rules were applied")
	ErrOtherName     = errors.New("the file has a second name, a hard link")
	ErrTooManyMounts = errors.New("more mounts than the kernel allows")
)

// EntryError is an entry of the settings that cannot be honoured. The command must not start.
type EntryError struct {
	Entry  string // where it stands and how it is written, for example `filesystem.denyRead.0 ("a*")`
	Path   string // the absolute path it leads to
	Reason error  // ErrUninspected, ErrPerProcess, ErrMoved, ErrOtherName or ErrMask
	Advice string // what to do about it
	Err    error  // the system's error behind the reason, or nil
}

// Error says which entry, what is wrong and what to do.
func (e *EntryError) Error() string {
	text := fmt.Sprintf("%s: %v (%q)", e.Entry, e.Reason, e.Path)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; " + e.Advice
}

// Unwrap gives the reason and the system's error.
func (e *EntryError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// SearchError is a part of the disk that could not be read while the plan was made, so that it may lack a deny
// (FS-40). The command must not start.
type SearchError struct {
	Path string // absolute
	Err  error  // the system's error
}

// Error says where the search stopped and what to do.
func (e *SearchError) Error() string {
	return fmt.Sprintf("cannot inspect %q, so a deny could be missed: %v; make it readable, or take the directory around it "+
		"out of the path lists", e.Path, e.Err)
}

// Unwrap gives the system's error.
func (e *SearchError) Unwrap() error { return e.Err }

// SizeError is a plan that needs more mounts than the kernel allows (FS-65). It is ErrTooManyMounts.
type SizeError struct {
	Mounts    int // how many the sandbox would hold
	Mandatory int // how many of them come from the mandatory denies
	Max       int // fs.mount-max
}

// Error gives the counts and what to do.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the file system rules need %d mounts, %d of them for protected names, but the kernel allows %d; "+
		"raise fs.mount-max with sysctl, or deny whole directories in place of single files", e.Mounts, e.Mandatory, e.Max)
}

// Is reports that a SizeError is ErrTooManyMounts.
func (e *SizeError) Is(target error) bool { return target == ErrTooManyMounts }

// DirError is a working directory in which no command can be started: there is none, or it cannot be looked at. One that
// the settings hide is no error (FS-49).
type DirError struct {
	Path string // absolute
	Err  error  // the system's error, of the kind that chdir(2) would give
}

// Error says what is wrong with the directory and what to do.
func (e *DirError) Error() string {
	return fmt.Sprintf("the working directory %q cannot be entered: %v; start the command in one that exists", e.Path, e.Err)
}

// Unwrap gives the system's error.
func (e *DirError) Unwrap() error { return e.Err }
