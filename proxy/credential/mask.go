package credential

import (
	"errors"
	"fmt"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
)

// errNothing says that an entry finds nothing to mask in a text.
var errNothing = errors.New("nothing to mask")

// maxValues is how many different values one text may hold. All are kept until the session ends and looked for in every request,
// and a text may be a command's own, written where the file to mask was missing.
const maxValues = 10_000

func errTooMany() error {
	return &hideError{fmt.Sprintf("more than %d different values in it would have to be masked", maxValues)}
}

// mask is the fake of a text.
type mask struct {
	fake  []byte
	first *secret // the first one in it
}

// fakeOf makes the fake of a text: the whole of it, or what the entry's pattern captures (CRED-10, CRED-12, CRED-18).
// source says where the text is from. Errors are errNothing, one that matches ErrHide, or end the launch; past the deadline that is
// ErrBound.
func (e *entry) fakeOf(s *Store, source string, text []byte, deadline time.Time) (mask, error) {
	key := groupKey{source: source, how: e.how(), hosts: e.hostsKey}
	of := origin{hosts: e.hosts, name: e.label}
	if e.program == nil && e.rule.Decode == "" {
		of.whole = e.what == sourceVariable
		value := text
		if e.what == sourceFile {
			value = trimLineBreaks(text) // a header could not hold them
		}
		secrets, err := s.assign(key, of, [][]byte{value}, s.plainFace)
		if err != nil {
			return mask{}, err
		}
		return mask{append([]byte(secrets[0].sentinel), text[len(value):]...), secrets[0]}, nil
	}
	spans := []span{{0, len(text)}}
	if e.program != nil {
		var err error
		if spans, err = e.program.captures(text, &deadline); err != nil {
			return mask{}, err
		}
	}
	found := collect(text, spans)
	if len(found.values) > maxValues {
		return mask{}, errTooMany()
	}
	face := s.plainFace
	if e.rule.Decode == config.DecodeJWT {
		tokens, err := found.keepTokens(e.rule.MaskClaims, deadline)
		if err != nil {
			return mask{}, err
		}
		defer tokens.release()
		face = tokens.face(s, of)
	}
	if len(found.values) == 0 {
		return mask{}, errNothing
	}
	if e.copies {
		if err := found.addDuplicates(text, deadline); err != nil {
			return mask{}, err
		}
	}
	secrets, err := s.assign(key, of, found.values, face)
	if err != nil {
		return mask{}, err
	}
	return mask{found.splice(text, secrets), secrets[0]}, nil
}

// how tells entries apart that take different things from one source.
func (e *entry) how() string {
	if e.program == nil && e.rule.Decode == "" {
		return ""
	}
	return fmt.Sprintf("%q %q %q", e.pattern, e.rule.Decode, e.rule.MaskClaims)
}

// trimLineBreaks returns text without its final line breaks.
func trimLineBreaks(text []byte) []byte {
	end := len(text)
	for end > 0 && (text[end-1] == '\n' || text[end-1] == '\r') {
		end--
	}
	return text[:end]
}

// explain makes an error of a launch of what fakeOf returned.
func (e *entry) explain(err error) error {
	label := e.label
	if e.rule.Extract != "" && e.program != nil {
		label += fmt.Sprintf(" has extract pattern %q", e.rule.Extract)
	}
	wrapped := &EntryError{Entry: label, Err: err}
	switch {
	case errors.Is(err, ErrOverlap):
		wrapped.Advice = "write the pattern so that its matches do not look into one another"
	case errors.Is(err, ErrBound):
		wrapped.Advice = "write the pattern so that it has fewer ways to match, for example without nested repeats"
	}
	return wrapped
}

// nothing decides what becomes of a source in which there is nothing to mask (CRED-14). hide: the command must not have
// it at all. Otherwise it stays as it is, and the person was warned.
func (e *entry) nothing(warn func(string)) (hide bool, err error) {
	switch e.rule.OnExtractNoMatch {
	case config.NoMatchDeny:
		return true, nil
	case config.NoMatchError:
		wrapped := &EntryError{Entry: e.label + e.sought(), Err: ErrNoMatch}
		wrapped.Advice = `correct the entry, or set onExtractNoMatch to "deny" to start without the ` + e.what.noun()
		return false, wrapped
	default:
		warn(fmt.Sprintf("[sandbox-runtime] WARNING: %s%s that matched nothing in the %s. The %s is left UNPROTECTED: the "+
			"command sees it as it is. Correct the entry, or set onExtractNoMatch to \"deny\" or \"error\".",
			e.label, e.sought(), e.what.noun(), e.what.noun()))
		return false, nil
	}
}

// sought says what an entry looks for.
func (e *entry) sought() string {
	switch {
	case e.rule.Decode != "" && e.what == sourceVariable:
		return fmt.Sprintf(" has decode %q", e.rule.Decode)
	case e.rule.Decode != "" && e.rule.Extract == "":
		return fmt.Sprintf(" has decode %q", e.rule.Decode)
	case e.rule.Decode != "":
		return fmt.Sprintf(" has decode %q and extract pattern %q", e.rule.Decode, e.rule.Extract)
	}
	return fmt.Sprintf(" has extract pattern %q", e.rule.Extract)
}
