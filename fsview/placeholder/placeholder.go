package placeholder

import (
	"errors"
	"fmt"
	"path"
)

// Name is a name that must not come to exist.
type Name struct {
	Path string // absolute, a location: no symbolic link on the way
	Dir  bool   // a directory's name (.vscode); else a file's
}

// Placeholder is an object on the host that stands for names.
type Placeholder struct {
	Path string // absolute
	Dir  bool   // a directory; else a file
}

// The reasons for which names cannot be held. They are found with errors.Is.
var (
	// ErrState is a state directory that is missing, not the caller's own, or not writable.
	ErrState = errors.New("the state directory cannot be used")
	// ErrBusy is a lock that another process kept for too long.
	ErrBusy = errors.New("the journal of placeholders is locked")
	// ErrForeign is a placeholder that is not in this journal: another user's, or another state directory's.
	ErrForeign = errors.New("the path is a placeholder of another user or of another state directory")
	// ErrChanged is a path that is not what it was when the rules were made. Beginning again is the cure.
	ErrChanged = errors.New("the path changed meanwhile")
	// ErrObstructed is a path that leads through something that is not a directory.
	ErrObstructed = errors.New("the path leads through a link or a file")
	// ErrMeaning is a name that no placeholder can stand for: to git its mere existence says something (FS-53).
	ErrMeaning = errors.New("a file of this name would stop git")
	// ErrPath is a path that is not absolute, not in its shortest form, or holds a NUL byte.
	ErrPath = errors.New("not an absolute path in its shortest form")
	// ErrReleased is a session that has been released.
	ErrReleased = errors.New("the placeholders have been released")
)

// Error is a failure to make, share or remove a placeholder.
type Error struct {
	Op     string // what was being done, for example "make a placeholder (mkdirat)"
	Path   string // where; absolute
	Err    error  // a sentinel of this package or the system's error
	Advice string // what to do about it
}

// Error says what failed, where, why and what to do.
func (e *Error) Error() string {
	return fmt.Sprintf("cannot %s %q: %v; %s", e.Op, e.Path, e.Err, e.Advice)
}

// Unwrap gives the reason.
func (e *Error) Unwrap() error { return e.Err }

// DefaultState is the absolute path of the state directory of the user uid (the effective id): $XDG_STATE_HOME/srt, else
// /var/lib/srt for root, else ~/.local/state/srt. It has to survive a power cut, as the placeholders do; that rules out
// /run and /tmp. For root it does not depend on HOME, which sudo may leave pointing to another user's. Nothing is created.
// The error is ErrState when the variables name no directory (XDG Base Directory Specification: relative ones count as
// unset).
func DefaultState(getenv func(string) string, uid int) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); path.IsAbs(dir) {
		return path.Join(dir, "srt"), nil
	}
	if uid == 0 {
		return "/var/lib/srt", nil
	}
	if home := getenv("HOME"); path.IsAbs(home) {
		return path.Join(home, ".local/state/srt"), nil
	}
	return "", &Error{Op: "find the state directory", Path: "$HOME", Err: ErrState,
		Advice: "set HOME or XDG_STATE_HOME to an absolute path; placeholders are recorded there"}
}
