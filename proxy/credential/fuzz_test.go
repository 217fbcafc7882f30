package credential

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/srt-sandbox/srt/runtime/config"
)

// putBack replaces every sentinel of s in a fake by its value, in one pass.
func putBack(s *Store, fake string) string {
	var pairs []string
	for _, x := range s.secrets {
		value, _ := x.appendTo(nil)
		pairs = append(pairs, x.sentinel, string(value))
	}
	return strings.NewReplacer(pairs...).Replace(fake)
}

// FuzzExtract: only what group 1 captures changes (CRED-12), its copies too if they are masked (CRED-13), and nothing that
// is captured shows at its place. The ranges are asked of the engine a second time, by another of its interfaces.
func FuzzExtract(f *testing.F) {
	f.Add(`token: (\S+)`, "token: abc\r\ntoken: abc", false)
	f.Add(`password (\S+)`, "# hunter2\nmachine a password hunter2\n", true)
	f.Add(`=(\S+)`, "ä€😀=pä€😀 ß=\ufffd\ufeff", true)
	f.Add(`(?<=(\d+)(\d+))x`, "1053x1053x", false)
	f.Add(`(?=(..))`, "abcd", false)
	f.Add(`(a|b)*?(c)?`, "ababc", true)
	f.Add(`(a+)`, "a aa aaa", true)
	f.Fuzz(func(t *testing.T, pattern, text string, copies bool) {
		if len(text) > 4096 || !utf8.ValidString(text) || strings.Contains(text, sentinelPrefix) {
			t.Skip("not what a launch masks")
		}
		s, err := NewStore()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		e, err := s.prepare(sourceFile, "f", config.Credential{Extract: pattern}, Spec{})
		if err != nil || e.program == nil {
			t.Skip("no pattern")
		}
		e.copies = copies
		made, err := e.fakeOf(s, "f", []byte(text), time.Now().Add(200*time.Millisecond))
		switch {
		case errors.Is(err, errNothing):
			if len(s.secrets) > 0 {
				t.Error("nothing was found, yet there are secrets")
			}
			return
		case errors.Is(err, ErrGroup), errors.Is(err, ErrOverlap), errors.Is(err, ErrBound):
			return
		case err != nil:
			t.Fatal(err)
		}
		fake := string(made.fake)
		if got := putBack(s, fake); got != text {
			t.Fatalf("CRED-12: put back, the text is %q, want %q", got, text)
		}
		if !copies {
			want := spliceByEngine(t, e, text)
			if got := anySentinel.ReplaceAllString(padless(s, fake), "\x00"); got != want {
				t.Errorf("CRED-12: with the captures cut out %q, want %q", got, want)
			}
			return
		}
		for _, x := range s.secrets {
			value, _ := x.appendTo(nil)
			for _, piece := range strings.Split(strings.NewReplacer(cutOut(s)...).Replace(fake), "\x00") {
				if strings.Contains(piece, string(value)) {
					t.Errorf("CRED-13: %q is left in %q", value, fake)
				}
			}
		}
	})
}

// cutOut are the sentinels of a store, each with a NUL for it.
func cutOut(s *Store) []string {
	var pairs []string
	for _, x := range s.secrets {
		pairs = append(pairs, x.sentinel, "\x00")
	}
	return pairs
}

// padless shortens the sentinels of a fake to their common length.
func padless(s *Store, fake string) string {
	var pairs []string
	for _, x := range s.secrets {
		pairs = append(pairs, x.sentinel, x.sentinel[:sentinelHead])
	}
	return strings.NewReplacer(pairs...).Replace(fake)
}

// spliceByEngine puts a NUL in the place of every capture that is not empty.
func spliceByEngine(t *testing.T, e *entry, text string) string {
	t.Helper()
	e.program.re.MatchTimeout = time.Minute
	var out strings.Builder
	at := 0
	var ranges []span
	m, err := e.program.re.FindStringMatch(text)
	for ; m != nil && err == nil; m, err = e.program.re.FindNextMatch(m) {
		if from, length := m.GroupByNumber(1).ByteRange(); length > 0 {
			ranges = append(ranges, span{from, from + length})
		}
	}
	if err != nil {
		t.Skip("took too long")
	}
	for len(ranges) > 0 { // they may run backwards
		first := 0
		for i, r := range ranges {
			if r.from < ranges[first].from {
				first = i
			}
		}
		out.WriteString(text[at:ranges[first].from] + "\x00")
		at = ranges[first].to
		ranges = append(ranges[:first], ranges[first+1:]...)
	}
	out.WriteString(text[at:])
	return out.String()
}

// FuzzJWT: what is masked of a token is what the standard library finds in it (CRED-18, CRED-19), and every other byte of
// the payload stays.
func FuzzJWT(f *testing.F) {
	f.Add(plainHeader, `{"sub":"me","n":12345678901234567890}`, "c2ln", "sub")
	f.Add(`{"\u0061lg":1}`, ` { "sub" : "a\"\ud83d\ude00" , "sub":"b","x":[{"sub":"c"}] } `, "", "sub")
	f.Add(plainHeader, `{"s\u0075b":"me","":"x"}`, "c2ln", "")
	f.Add(plainHeader, `[]`, "c2ln", "sub")
	f.Add(`{"typ":"JWT"}`, `{}`, "x.y", "aud")
	f.Fuzz(func(t *testing.T, header, payload, signature, name string) {
		if len(header)+len(payload)+len(signature) > 8192 || strings.Contains(signature, sentinelPrefix) ||
			strings.Contains(payload, sentinelPrefix) || !utf8.ValidString(header+payload) {
			t.Skip("not what a launch masks, or what the library reads otherwise")
		}
		value := jwt(header, payload, signature)
		s, err := NewStore()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		e, err := s.prepare(sourceVariable, "v", config.Credential{Decode: config.DecodeJWT, MaskClaims: []string{name}}, Spec{})
		if err != nil {
			t.Fatal(err)
		}
		made, err := e.fakeOf(s, "v", []byte(value), time.Now().Add(time.Minute))
		if errors.Is(err, errSentinelInToken) {
			return
		}
		var head map[string]json.RawMessage
		isToken := !strings.Contains(signature, ".") && json.Unmarshal([]byte(header), &head) == nil && head["alg"] != nil &&
			json.Valid([]byte(payload))
		want := []string{}
		if isToken {
			want = topLevelStrings(payload, name)
		}
		if len(want) == 0 {
			if !errors.Is(err, errNothing) {
				t.Errorf("CRED-18: %v for what holds nothing to mask", err)
			}
			return
		}
		if err != nil {
			t.Fatalf("CRED-18: %v for a JWT with %q", err, want)
		}
		parts := strings.Split(string(made.fake), ".")
		shownPayload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil || len(parts) != 3 || parts[0] != strings.Split(value, ".")[0] || parts[2] != fakeSignature {
			t.Fatalf("CRED-19: %q, %v", made.fake, err)
		}
		if !json.Valid(shownPayload) {
			t.Fatalf("CRED-19: the payload is no JSON: %q", shownPayload)
		}
		claims := topLevelStrings(string(shownPayload), name)
		if len(claims) != len(want) {
			t.Fatalf("CRED-19: %d claims, want %d", len(claims), len(want))
		}
		for i, sentinel := range claims {
			x := secretOf(s, sentinel)
			if x == nil {
				t.Fatalf("CRED-19: claim %d shows as it is: %q", i, sentinel)
			}
			held, _ := x.appendTo(nil)
			if string(held) != want[i] {
				t.Errorf("CRED-19: claim %d stands for %q, want %q", i, held, want[i])
			}
		}
		if got, want := otherBytes(string(shownPayload), claims), len(payload); got > want {
			t.Errorf("CRED-19: %d bytes beside the claims, of %d", got, want)
		}
		if x := secretOf(s, string(made.fake)); x == nil {
			t.Error("CRED-19: the whole fake stands for nothing")
		} else if held, _ := x.appendTo(nil); !bytes.Equal(held, []byte(value)) {
			t.Error("CRED-19: the whole fake stands for another token")
		}
	})
}

// otherBytes is how much of a payload is not a sentinel.
func otherBytes(payload string, sentinels []string) int {
	for _, s := range sentinels {
		payload = strings.Replace(payload, s, "", 1)
	}
	return len(payload)
}

// secretOf returns the secret with a sentinel.
func secretOf(s *Store, sentinel string) *secret {
	for _, x := range s.secrets {
		if x.sentinel == sentinel {
			return x
		}
	}
	return nil
}

// topLevelStrings are the string members of a JSON object that have a name, in order, as the standard library reads them.
func topLevelStrings(text, name string) []string {
	found := []string{}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return found
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return found
		}
		var value any
		if err := d.Decode(&value); err != nil && !errors.Is(err, io.EOF) {
			return found
		}
		if s, ok := value.(string); ok && key == name {
			found = append(found, s)
		}
	}
	return found
}
