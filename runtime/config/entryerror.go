package config

import (
	"fmt"
	"strconv"
)

// EntryError says why one entry of a list is invalid. errors.Is finds Kind.
type EntryError struct {
	Kind   error  // ErrInvalidDomain or ErrInvalidAddress
	Entry  string // the entry as written
	Reason string // what is wrong with it and what is expected
}

// Error returns one line: the class, the entry quoted, the reason.
func (e *EntryError) Error() string {
	return e.Kind.Error() + " " + quoteEntry(e.Entry) + ": " + e.Reason
}

// Unwrap returns Kind.
func (e *EntryError) Unwrap() error { return e.Kind }

// quoteEntry renders an entry for a message: quoted, so that control characters cannot reach a terminal.
func quoteEntry(entry string) string {
	const most = 120
	if len(entry) > most {
		return fmt.Sprintf("%s... (%d bytes)", strconv.QuoteToASCII(entry[:most]), len(entry))
	}
	return strconv.Quote(entry)
}
