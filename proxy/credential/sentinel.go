package credential

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

const (
	sentinelPrefix = "fake_value_"
	sentinelHead   = len(sentinelPrefix) + 36 // what every sentinel has: the prefix and a UUID

	// paddingAlphabet survives shells, JSON, URLs, forms and headers unquoted (CRED-5).
	paddingAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789_-"
)

// sentinels draws what stands for values. The zero value is ready. It is not safe for concurrent use.
type sentinels struct{ heads map[string]struct{} }

// draw returns a sentinel of size bytes, or of the shortest length there is if that is more (CRED-5). No sentinel that
// was ever drawn is part of another: the prefix occurs in each at its start alone, and no two have the same UUID.
func (s *sentinels) draw(size int) string {
	for {
		text := randomSentinel(size)
		head := text[:sentinelHead]
		if _, taken := s.heads[head]; taken || strings.Contains(text[1:], sentinelPrefix) {
			continue
		}
		if s.heads == nil {
			s.heads = make(map[string]struct{})
		}
		s.heads[head] = struct{}{}
		return text
	}
}

// drawToken returns a fake JWT that tells nothing of the one it stands for (CRED-19).
func (s *sentinels) drawToken() string {
	for {
		payload := `{"sub":"` + s.draw(0) + `","exp":9999999999}`
		text := encodePart(`{"alg":"HS256","typ":"JWT"}`) + "." + encodePart(payload) + "." + fakeSignature
		// A sentinel must not be part of a token either. Base64 spells one by chance as good as never.
		if !strings.Contains(text, sentinelPrefix) {
			return text
		}
	}
}

// encodePart encodes one of the first two parts of a JWT (RFC 7515 section 2).
func encodePart(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// randomSentinel returns the prefix, a lower-case UUID of version 4 (RFC 9562 section 5.4) and padding.
func randomSentinel(size int) string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails: the program ends if the kernel has no random bytes
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	out := make([]byte, sentinelHead, max(size, sentinelHead))
	copy(out, sentinelPrefix)
	uuid := out[len(sentinelPrefix):]
	for i, at := range [...]struct{ from, to, place int }{{0, 4, 0}, {4, 6, 9}, {6, 8, 14}, {8, 10, 19}, {10, 16, 24}} {
		if i > 0 {
			uuid[at.place-1] = '-'
		}
		hex.Encode(uuid[at.place:], id[at.from:at.to])
	}
	return string(appendPadding(out, size))
}

// appendPadding appends random characters until out has size bytes.
func appendPadding(out []byte, size int) []byte {
	const even = 256 / len(paddingAlphabet) * len(paddingAlphabet) // below it every character is as likely
	var random [256]byte
	for len(out) < size {
		_, _ = rand.Read(random[:min(len(random), 2*(size-len(out)))])
		for _, b := range random[:min(len(random), 2*(size-len(out)))] {
			if int(b) < even && len(out) < size {
				out = append(out, paddingAlphabet[int(b)%len(paddingAlphabet)])
			}
		}
	}
	return out
}
