package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
)

// sign returns the signature of a request in hex (steps 2 to 4 of the document), false if there is no key any more.
//
// The key is read where it lies and every key derived from it is overwritten. crypto/hmac is not used for that reason
// alone: it keeps a copy of its key that nothing can reach.
func (g *Signing) sign(r *canonicalRequest) (signature string, ok bool) {
	h := sha256.New()
	defer scrub(h)
	var request [sha256.Size]byte
	r.writeTo(h)
	h.Sum(request[:0])

	key := new([sha256.Size]byte)
	defer wipe(key[:])
	if !g.pair.key.use(func(value []byte) {
		// Reading a hash leaves copies on the stack. The same steps without a key, before, make the stack as large as it
		// has to be, so that it is not copied in between; after, they overwrite what was left.
		var none [sha256.Size]byte
		deriveKey(&none, h, nil, g.scope)
		deriveKey(key, h, value, g.scope)
		deriveKey(&none, h, nil, g.scope)
	}) {
		return "", false
	}
	toSign := hmacAlgorithm + "\n" + g.date + "\n" + g.scope.String() + "\n" + hex.EncodeToString(request[:])
	mac(key, h, key[:], toSign)
	return hex.EncodeToString(key[:]), true
}

// deriveKey sets key to the signing key of a scope (step 3).
func deriveKey(key *[sha256.Size]byte, h hash.Hash, secretKey []byte, s scope) {
	first := append(append(make([]byte, 0, len("AWS4")+len(secretKey)), "AWS4"...), secretKey...)
	defer wipe(first)
	mac(key, h, first, s.date)
	for _, part := range []string{s.region, s.service, scopeEnd} {
		mac(key, h, key[:], part)
	}
}

// mac sets out to the HMAC-SHA256 of message (RFC 2104). key may be a part of out. h is used and left scrubbed.
func mac(out *[sha256.Size]byte, h hash.Hash, key []byte, message string) {
	block := make([]byte, sha256.BlockSize)
	defer wipe(block)
	if len(key) > len(block) {
		h.Reset()
		_, _ = h.Write(key)
		h.Sum(block[:0])
	} else {
		copy(block, key)
	}
	const inner, outer = 0x36, 0x5c
	for i := range block {
		block[i] ^= inner
	}
	h.Reset()
	_, _ = h.Write(block)
	_, _ = io.WriteString(h, message)
	h.Sum(out[:0])
	for i := range block {
		block[i] ^= inner ^ outer
	}
	h.Reset()
	_, _ = h.Write(block)
	_, _ = h.Write(out[:])
	h.Sum(out[:0])
	scrub(h)
}

// scrub overwrites what h keeps: its state, and the bytes that it has not hashed yet. In two steps, because it hashes a
// whole block without keeping it.
func scrub(h hash.Hash) {
	var zeroes [sha256.BlockSize]byte
	h.Reset()
	_, _ = h.Write(zeroes[:1])
	_, _ = h.Write(zeroes[1:])
	h.Reset()
}

// hashHex returns the SHA-256 of b in lower-case hex.
func hashHex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
