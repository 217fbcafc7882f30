package credential

import "errors"

// Reasons of an *EntryError.
var (
	// ErrNoMatch says that an entry with onExtractNoMatch "error" found nothing to mask (CRED-14).
	ErrNoMatch = errors.New("nothing to mask was found")
	// ErrGroup says that a match has no group 1 (CRED-12).
	ErrGroup = errors.New("capture group 1 is undefined — group 1 must capture the credential value on every match.")
	// ErrOverlap says that two captures share bytes (CRED-12).
	ErrOverlap = errors.New("two matches capture the same text, so it cannot be replaced")
	// ErrBound says that a pattern took too much time or memory, or that the engine broke down (CRED-17).
	ErrBound = errors.New("the search took more than 2 seconds or too much memory")
)

// EntryError says why an entry of the settings cannot be masked, so that the command is not started. It never holds any
// of the text.
type EntryError struct {
	Entry  string // the entry, for example: credentials.files entry "~/.netrc"
	Err    error  // the reason
	Advice string // what to do, one clause; empty: the reason says it
}

// Error returns one line.
func (e *EntryError) Error() string {
	text := e.Entry + ": " + e.Err.Error()
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

// Unwrap returns the reason.
func (e *EntryError) Unwrap() error { return e.Err }
