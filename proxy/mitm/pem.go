package mitm

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
)

// The lines round a certificate (RFC 7468 section 5). The list of a host's roots is read at the start of a session, and
// package encoding/pem would take ten times as long for it as looking for these lines does.
const (
	beginCertificate = "-----BEGIN CERTIFICATE-----"
	endCertificate   = "-----END CERTIFICATE-----"
	pemLine          = 64 // characters
)

// certificateBlocks returns the DER of every certificate in a text, in order; all other blocks are left out (TLS-12).
func certificateBlocks(text []byte) [][]byte {
	var found [][]byte
	for {
		block, rest := nextCertificate(text)
		if block == nil {
			return found
		}
		if der := decodeCertificate(block); der != nil {
			found = append(found, der)
		}
		text = rest
	}
}

// nextCertificate returns the first text from a BEGIN line to its END line, and what follows it.
func nextCertificate(text []byte) (block, rest []byte) {
	for {
		i := bytes.Index(text, []byte(beginCertificate))
		if i < 0 {
			return nil, nil
		}
		atLineStart := i == 0 || text[i-1] == '\n' || text[i-1] == '\r'
		if text = text[i:]; !atLineStart {
			text = text[len(beginCertificate):]
			continue
		}
		body := text[len(beginCertificate):]
		end := bytes.Index(body, []byte(endCertificate))
		if end < 0 {
			return nil, nil
		}
		// A block without its end must not swallow the one after it.
		if next := bytes.Index(body[:end], []byte("-----BEGIN ")); next >= 0 {
			text = body[next:]
			continue
		}
		end += len(beginCertificate) + len(endCertificate)
		return text[:end], text[end:]
	}
}

// decodeCertificate decodes one block, or returns nil if it is none. What is more than lines of base64 is left to package
// encoding/pem.
func decodeCertificate(block []byte) []byte {
	body := block[len(beginCertificate) : len(block)-len(endCertificate)]
	der := make([]byte, base64.StdEncoding.DecodedLen(len(body)))
	if n, err := base64.StdEncoding.Decode(der, body); err == nil && n > 0 { // it passes over line breaks
		return der[:n]
	}
	if b, _ := pem.Decode(block); b != nil && len(b.Bytes) > 0 {
		return b.Bytes
	}
	return nil
}

// appendCertificate appends a certificate as PEM.
func appendCertificate(text, der []byte) []byte {
	text = append(text, beginCertificate+"\n"...)
	const whole = pemLine / 4 * 3 // bytes that fill a line
	for len(der) > 0 {
		line := der[:min(whole, len(der))]
		der = der[len(line):]
		text = append(base64.StdEncoding.AppendEncode(text, line), '\n')
	}
	return append(text, endCertificate+"\n"...)
}
