package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// Classes of the errors of [CompileExtract] (CFG-37, CRED-16).
var (
	ErrExtractSyntax = errors.New("extract is not a valid regular expression")
	ErrExtractGroup  = errors.New("extract must contain at least one capturing group — group 1 is the credential " +
		`value to mask (e.g. "token:\s*(\S+)")`)
)

// ExtractError says what srt's engine cannot run in an extract pattern. errors.Is finds [ErrExtractSyntax].
type ExtractError struct {
	Detail string // one clause
}

// Error returns one line.
func (e *ExtractError) Error() string { return ErrExtractSyntax.Error() + ": " + e.Detail }

// Unwrap returns [ErrExtractSyntax].
func (e *ExtractError) Unwrap() error { return ErrExtractSyntax }

// CompileExtract compiles the pattern of an extract key: an ECMAScript regular expression without flags that holds at
// least one capturing group (CFG-37). A pattern that quietly matches something else than in ECMAScript would expose a
// credential, so what the engine reads differently is translated first, and what cannot be translated is an error.
// Groups of the result are numbered as ECMAScript does, named ones included; they have lost their names.
//
// One difference stays: a character beyond U+FFFF counts as one.
//
// The result has no time limit; whoever matches hostile text with it sets MatchTimeout first, for each search, and keeps
// it to one goroutine while that counts. A search that needs more than 8,000,000 slots of stack fails. Errors match
// [ErrExtractSyntax] or [ErrExtractGroup] with errors.Is.
func CompileExtract(pattern string) (*regexp2.Regexp, error) {
	if !utf8.ValidString(pattern) {
		return nil, &ExtractError{"it is not UTF-8"}
	}
	groups, err := surveyGroups(pattern)
	if err != nil {
		return nil, err
	}
	translated, err := translate(pattern, groups)
	if err != nil {
		return nil, err
	}
	compiled, err := compileGuarded(translated)
	if err != nil {
		return nil, err
	}
	if groups.count == 0 {
		return nil, ErrExtractGroup
	}
	return compiled, nil
}

// stackSlots bounds the backtracking of one search (CRED-17), at 8 bytes a slot.
const stackSlots = 8_000_000

// compileGuarded runs the engine's compiler. It was not written for patterns of unknown quality; a panic in it is the
// same to the operator as an error.
func compileGuarded(pattern string) (compiled *regexp2.Regexp, err error) {
	defer func() {
		if recover() != nil {
			compiled, err = nil, &ExtractError{"the engine cannot compile it"}
		}
	}()
	compiled, err = regexp2.Compile(pattern, regexp2.ECMAScript, regexp2.OptionMaxBacktrackingStackSize(stackSlots))
	if err != nil {
		// The text after "in" quotes the translated pattern, which the operator never wrote.
		detail, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "error parsing regexp: "), " in `")
		return nil, &ExtractError{detail}
	}
	return compiled, nil
}

// groupTable is what a first pass learns about the capturing groups of a pattern.
type groupTable struct {
	count  int
	number map[string]int // by name
}

// surveyGroups counts the capturing groups and refuses every "(?" that ECMAScript does not have (CRED-16): the engine
// would take it for inline flags, atomic or balancing groups, conditionals or comments.
func surveyGroups(pattern string) (groupTable, error) {
	t := groupTable{number: map[string]int{}}
	inClass := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case inClass:
			inClass = c != ']'
		case c == '[':
			inClass = true
			if i+1 < len(pattern) && pattern[i+1] == '^' {
				i++
			}
		case c == '(':
			opening, name, err := groupOpening(pattern[i:])
			if err != nil {
				return t, err
			}
			if opening != "(" && name == "" {
				break
			}
			t.count++
			if name == "" {
				break
			}
			if _, taken := t.number[name]; taken {
				return t, &ExtractError{"two groups have the name " + quoteEntry(name)}
			}
			t.number[name] = t.count
		}
	}
	return t, nil
}

// groupOpening returns the text that opens a group, "(?<name>" included, and the name if it has one.
func groupOpening(s string) (opening, name string, err error) {
	if !strings.HasPrefix(s, "(?") {
		return "(", "", nil
	}
	for _, plain := range []string{"(?:", "(?=", "(?!", "(?<=", "(?<!"} {
		if strings.HasPrefix(s, plain) {
			return plain, "", nil
		}
	}
	if rest, ok := strings.CutPrefix(s, "(?<"); ok {
		if name, ok := groupName(rest); ok {
			return s[:len("(?<")+len(name)+1], name, nil
		}
	}
	return "", "", &ExtractError{`"(?" must be followed by ":", "=", "!", "<=", "<!" or "<name>"`}
}

// groupName returns the name that s starts with and that a ">" ends.
func groupName(s string) (string, bool) {
	end := strings.IndexByte(s, '>')
	if end <= 0 {
		return "", false
	}
	name := s[:end]
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return "", false
		}
	}
	return name, true
}

// Engine patterns for what ECMAScript means by "." and by \b and \B: the engine's own "." takes U+2028 and U+2029, and
// its \b counts letters beyond ASCII as word characters.
const (
	engineDot      = `[^\n\r\u2028\u2029]`
	engineBoundary = `(?:(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])|(?<![0-9A-Za-z_])(?=[0-9A-Za-z_]))`
	engineInside   = `(?:(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<![0-9A-Za-z_])(?![0-9A-Za-z_]))`
)

// translator rewrites an ECMAScript pattern for the engine.
type translator struct {
	rest   string
	out    strings.Builder
	groups groupTable
}

func translate(pattern string, groups groupTable) (string, error) {
	t := translator{rest: pattern, groups: groups}
	for t.rest != "" {
		if err := t.term(); err != nil {
			return "", err
		}
	}
	return t.out.String(), nil
}

// put writes s and skips n bytes of the pattern.
func (t *translator) put(s string, n int) {
	t.out.WriteString(s)
	t.rest = t.rest[n:]
}

// term translates one token outside a class.
func (t *translator) term() error {
	switch t.rest[0] {
	case '\\':
		return t.escape(false)
	case '.':
		t.put(engineDot, 1)
	case '(':
		opening, name, err := groupOpening(t.rest)
		if err != nil {
			return err
		}
		if name != "" {
			t.put("(", len(opening)) // the engine numbers named groups after all others
		} else {
			t.put(opening, len(opening))
		}
	case '[':
		return t.class()
	default:
		t.put(t.rest[:1], 1)
	}
	return nil
}

// class translates a character class. Its first "]" ends it, even in first place, and a "[" in it is just that: the
// engine would take it for a subtraction or a POSIX class.
func (t *translator) class() error {
	for _, special := range []struct{ text, meaning string }{{"[]", "(?!)"}, {"[^]", `[\s\S]`}} {
		if strings.HasPrefix(t.rest, special.text) {
			t.put(special.meaning, len(special.text))
			return nil
		}
	}
	t.put("[", 1)
	if strings.HasPrefix(t.rest, "^") {
		t.put("^", 1)
	}
	for t.rest != "" {
		switch t.rest[0] {
		case ']':
			t.put("]", 1)
			return nil
		case '[':
			t.put(`\[`, 1)
		case '\\':
			if err := t.escape(true); err != nil {
				return err
			}
		default:
			t.put(t.rest[:1], 1)
		}
	}
	return &ExtractError{`a "[" is not closed`}
}

// escape translates a backslash and what belongs to it.
func (t *translator) escape(inClass bool) error {
	if len(t.rest) < 2 {
		return &ExtractError{`it ends in a backslash`}
	}
	c := t.rest[1]
	switch {
	case strings.IndexByte("dDwWsS", c) >= 0:
		t.put(t.rest[:2], 2)
	case c == 'b' && inClass:
		t.put(`\x08`, 2)
	case c == 'b':
		t.put(engineBoundary, 2)
	case c == 'B' && !inClass:
		t.put(engineInside, 2)
	case strings.IndexByte("tnvfr", c) >= 0:
		t.put(`\x0`+string("9abcd"[strings.IndexByte("tnvfr", c)]), 2)
	case c == 'c' && len(t.rest) > 2 && isLetter(t.rest[2]):
		t.put(fmt.Sprintf(`\x%02x`, t.rest[2]&0x1f), 3)
	case c == 'x' && hexDigits(t.rest[2:], 2):
		t.put(t.rest[:4], 4)
	case c == 'u' && hexDigits(t.rest[2:], 4):
		return t.unit()
	case c == 'k' && !inClass:
		return t.namedReference()
	case '0' <= c && c <= '9':
		return t.number(inClass)
	case c >= utf8.RuneSelf:
		t.put("", 1) // an identity escape: the character itself follows
	case isLetter(c):
		return &ExtractError{"srt's engine does not know the escape \\" + string(rune(c))}
	default:
		t.put(fmt.Sprintf(`\x%02x`, c), 2)
	}
	return nil
}

// unit translates \uXXXX. A surrogate pair is one character to the engine, and half a pair could match nothing.
func (t *translator) unit() error {
	if digit := t.rest[2] | 0x20; digit == 'd' && t.rest[3] >= '8' {
		return &ExtractError{`srt's engine cannot match the surrogate \` + t.rest[1:6] + "; write the character itself"}
	}
	t.put(t.rest[:6], 6)
	return nil
}

// namedReference translates \k<name>.
func (t *translator) namedReference() error {
	if rest, ok := strings.CutPrefix(t.rest, `\k<`); ok {
		if name, ok := groupName(rest); ok && t.groups.number[name] > 0 {
			t.put(fmt.Sprintf(`(?:\%d)`, t.groups.number[name]), len(`\k<`)+len(name)+1)
			return nil
		}
	}
	return &ExtractError{`\k must be followed by "<name>" of a group in the pattern`}
}

// number translates \0 and backreferences. ECMAScript's legacy meanings of other numbers are refused: the engine has
// its own.
func (t *translator) number(inClass bool) error {
	digits := len(t.rest) - 1 - len(strings.TrimLeft(t.rest[1:], "0123456789"))
	text := t.rest[1 : 1+digits]
	if text == "0" {
		t.put(`\x00`, 2)
		return nil
	}
	n := 0
	for _, d := range []byte(text) {
		n = min(n*10+int(d-'0'), 1<<20)
	}
	if inClass || text[0] == '0' || n > t.groups.count {
		return &ExtractError{`\` + text + " is neither \\0 nor a reference to a group of the pattern"}
	}
	t.put(fmt.Sprintf(`(?:\%d)`, n), 1+digits)
	return nil
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// hexDigits reports whether s starts with n hexadecimal digits.
func hexDigits(s string, n int) bool {
	return len(s) >= n && strings.Trim(s[:n], "0123456789abcdefABCDEF") == ""
}
