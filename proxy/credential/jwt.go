package credential

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

const (
	// jwtPattern finds what may be a JWT in a file without an extract pattern (CRED-18).
	jwtPattern = `(eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)`
	// fakeSignature takes the place of a signature: with the real one, guesses of a claim could be checked (CRED-19).
	fakeSignature = "c3J0LWZha2U"
)

// errSentinelInToken says that a token cannot be told from what srt makes.
var errSentinelInToken = errors.New("a token in it holds the beginning of a fake; srt cannot mask it")

// token is a JWT of which some claims are masked. Header and payload are views of protected memory.
type token struct {
	header  []byte // the first part, encoded
	payload []byte // the second, decoded
	claims  []claim
}

// claim is one top-level string member of a payload.
type claim struct {
	key   claimKey
	at    span   // of the string in the payload, quotes included
	value []byte // unescaped
}

// tokens are the JWTs of a text, as many as it has distinct values.
type tokens struct {
	named  []string // maskClaims
	list   []token
	memory scratch
	rest   []byte // what is unused of it
}

// keepTokens leaves those values that are JWTs, and of which a claim is masked if any is to be (CRED-18, CRED-19).
// release gives the memory of the result back.
func (f *findings) keepTokens(named []string, deadline time.Time) (*tokens, error) {
	t := &tokens{named: named}
	size := 0
	for _, v := range f.values {
		size += 3 * len(v) // decoded parts, one at a time, and unescaped claims
	}
	var err error
	if t.memory, err = newScratch(size); err != nil {
		return nil, err
	}
	t.rest = t.memory.mapping
	wanted := make([]bool, len(f.values))
	for n, v := range f.values {
		parsed, ok := t.parse(v)
		if wanted[n] = ok && (len(named) == 0 || len(parsed.claims) > 0); wanted[n] {
			t.list = append(t.list, parsed)
		}
		if time.Now().After(deadline) {
			t.release()
			return nil, ErrBound
		}
	}
	f.keep(wanted)
	return t, nil
}

// release overwrites what was decoded.
func (t *tokens) release() { t.memory.release() }

// parse takes a JWT apart: three parts, of which the first two are base64url of JSON, the first an object with "alg".
func (t *tokens) parse(text []byte) (token, bool) {
	parts := bytes.Split(text, []byte("."))
	if len(parts) != 3 {
		return token{}, false
	}
	header, ok := t.decode(parts[0])
	if !ok {
		return token{}, false
	}
	hasAlg := t.members(header, func(key, _ []byte, _ span) bool { return string(key) == "alg" })
	payload, ok := t.decode(parts[1])
	if !hasAlg || !ok {
		return token{}, false
	}
	found := token{header: parts[0], payload: payload}
	times := make(map[string]int)
	t.members(payload, func(key, value []byte, at span) bool {
		i := slices.IndexFunc(t.named, func(name string) bool { return name == string(key) })
		if i >= 0 && value[0] == '"' {
			name := t.named[i]
			found.claims = append(found.claims, claim{claimKey{name, times[name]}, at, t.unquote(value)})
			times[name]++
		}
		return false
	})
	return found, true
}

// decode decodes a part and reports whether it is JSON. Padding, which a JWT has not, is taken too: a token that another
// library lets through is to be masked.
func (t *tokens) decode(part []byte) ([]byte, bool) {
	part = bytes.TrimRight(part, "=")
	if base64.RawURLEncoding.DecodedLen(len(part)) > len(t.rest) {
		return nil, false
	}
	n, err := base64.RawURLEncoding.Decode(t.rest, part)
	if err != nil || bytes.ContainsAny(part, "\r\n") {
		return nil, false
	}
	decoded := t.rest[:n:n]
	t.rest = t.rest[n:]
	return decoded, json.Valid(decoded)
}

// unquote returns the text of a JSON string.
func (t *tokens) unquote(raw []byte) []byte {
	out := appendUnquoted(t.rest[:0], raw)
	t.rest = t.rest[len(out):]
	return out[:len(out):len(out)]
}

// face returns what makes the fakes of tokens, see Store.assign.
func (t *tokens) face(s *Store, of origin) func(*member, int) (string, error) {
	if len(t.named) == 0 {
		return s.tokenFace
	}
	return func(m *member, i int) (string, error) {
		tok := t.list[i]
		var payload []byte
		at := 0
		for _, c := range tok.claims {
			sentinel, err := s.claimFace(m, of, c)
			if err != nil {
				return "", err
			}
			payload = append(payload, tok.payload[at:c.at.from]...)
			payload = append(append(append(payload, '"'), sentinel...), '"')
			at = c.at.to
		}
		payload = append(payload, tok.payload[at:]...)
		text := string(tok.header) + "." + base64.RawURLEncoding.EncodeToString(payload) + "." + fakeSignature
		if strings.Contains(text, sentinelPrefix) {
			return "", errSentinelInToken
		}
		return text, nil
	}
}

// claimFace returns the sentinel of a claim; a rotated token keeps it.
func (s *Store) claimFace(m *member, of origin, c claim) (string, error) {
	known := m.claims[c.key]
	if known == nil {
		known = &member{slot: &slot{}}
		if m.claims == nil {
			m.claims = make(map[claimKey]*member)
		}
		m.claims[c.key] = known
	}
	if err := s.put(known.slot, c.value); err != nil {
		return "", err
	}
	text, err := s.plainFace(known, 0)
	if err != nil {
		return "", err
	}
	return s.show(known, of, text).sentinel, nil
}
