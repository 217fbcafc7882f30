package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"
)

// SyntaxError says why a settings file is not JSON (CFG-7, CFG-10).
type SyntaxError struct {
	Detail string // one clause, with the line and column where there is one
}

// Error returns one line.
func (e *SyntaxError) Error() string { return "not valid JSON: " + e.Detail }

// Issue is one thing that is wrong with a config.
type Issue struct {
	Path   string // dotted, array positions as numbers; "(root)" for the top level
	Reason string
}

// Error lists everything that is wrong with a config. Cross-field checks are only made once everything else is right.
type Error struct {
	Issues []Issue // at least one; in the order of the schema
}

// Error returns "<dotted path>: <reason>" of every issue, joined by "; " (CFG-7).
func (e *Error) Error() string {
	var b strings.Builder
	for i, issue := range e.Issues {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(issue.Path + ": " + issue.Reason)
	}
	return b.String()
}

// Decode reads one config (CFG-10 to CFG-78). The rules about paths are those of the platform srt runs on. The error
// is a *[SyntaxError] when data is not JSON, else an *[Error] with every issue.
func Decode(data []byte) (*Config, error) { return decodeFor(runtime.GOOS, data) }

// decodeFor is Decode under the path rules of another platform.
func decodeFor(goos string, data []byte) (*Config, error) {
	tree, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	var w walk
	c := new(Config)
	configNode(goos).decode(&w, "", tree, c)
	if len(w.issues) == 0 {
		checkAcross(&w, goos, c)
	}
	if len(w.issues) > 0 {
		return nil, &Error{Issues: w.issues}
	}
	slices.SortFunc(w.unknown, func(a, b UnknownKey) int { return strings.Compare(a.Path, b.Path) })
	c.unknown = w.unknown
	return c, nil
}

// Validate makes the checks of [Decode] on a config that was built in Go code (LIB-2). A nil list counts as an empty
// one. The error is an *[Error].
func (c *Config) Validate() error { return c.validateFor(runtime.GOOS) }

func (c *Config) validateFor(goos string) error {
	var w walk
	if c == nil {
		w.fail("", "Required")
		return &Error{Issues: w.issues}
	}
	configNode(goos).check(&w, "", c)
	if len(w.issues) == 0 {
		checkAcross(&w, goos, c)
	}
	if len(w.issues) > 0 {
		return &Error{Issues: w.issues}
	}
	return nil
}

// parseJSON reads strict JSON (CFG-10) into a generic tree. Of a duplicated key the last one replaces the others whole
// (CFG-11), which is what encoding/json does when it decodes into an interface.
func parseJSON(data []byte) (any, error) {
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		return nil, &SyntaxError{"it starts with a byte order mark; save it as UTF-8 without one"}
	}
	if !utf8.Valid(data) {
		return nil, &SyntaxError{"it is not UTF-8 (first bad byte at " + position(data, firstInvalid(data)) + ")"}
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, syntaxError(data, err)
	}
	end := int(decoder.InputOffset())
	if rest := bytes.TrimLeft(data[end:], " \t\r\n"); len(rest) > 0 {
		return nil, &SyntaxError{"text follows the value at " + position(data, len(data)-len(rest))}
	}
	if at := halfPair(data); at >= 0 {
		return nil, &SyntaxError{"it holds half of a surrogate pair, which is no character, at " + position(data, at)}
	}
	return tree, nil
}

// halfPair returns the offset of a \uXXXX escape in JSON that is half of a surrogate pair without its other half, or
// -1. encoding/json replaces it by U+FFFD, so a deny would quietly be about another path.
func halfPair(data []byte) int {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		first := surrogate(data[i:])
		switch {
		case first == 0:
			i++ // the escaped character, which may be a backslash itself
		case first == 'h' && surrogate(data[min(i+6, len(data)):]) == 'l':
			i += 11
		default:
			return i
		}
	}
	return -1
}

// surrogate returns 'h' or 'l' when data starts with the escape of a high or low surrogate, else 0.
func surrogate(data []byte) byte {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' || data[2]|0x20 != 'd' {
		return 0
	}
	switch second := data[3] | 0x20; { // lower case; digits have the bit already
	case second >= 'c':
		return 'l'
	case second == '8' || second == '9' || second == 'a' || second == 'b':
		return 'h'
	}
	return 0
}

// syntaxError words an error of encoding/json for a person, with its place.
func syntaxError(data []byte, err error) *SyntaxError {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &SyntaxError{"it ends before the value does, at " + position(data, len(data))}
	case errors.As(err, &syntax):
		// Offset counts the bytes read, the offending one included.
		return &SyntaxError{syntax.Error() + " at " + position(data, max(0, int(syntax.Offset)-1))}
	}
	return &SyntaxError{err.Error()}
}

// position renders a byte offset as a line and a column, both from 1, the column in characters.
func position(data []byte, offset int) string {
	before := data[:min(offset, len(data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d column %d", line, column)
}

// firstInvalid returns the offset of the first byte that is not part of UTF-8.
func firstInvalid(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(data)
}

// IgnoredKeys returns the dotted paths of the keys present that configure helper programs srt does not use (CFG-30),
// sorted.
func (c *Config) IgnoredKeys() []string {
	var keys []string
	for _, k := range []struct {
		path    string
		present bool
	}{
		{"bwrapPath", c.BwrapPath != ""},
		{"ripgrep", c.Ripgrep != nil},
		{"seccomp", c.Seccomp != nil},
		{"socatPath", c.SocatPath != ""},
		{"windows.srtWin", c.Windows.SrtWin != nil},
	} {
		if k.present {
			keys = append(keys, k.path)
		}
	}
	return keys
}
