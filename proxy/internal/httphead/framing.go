package httphead

import "strconv"

// Framing says how the end of a body is found.
type Framing uint8

// The framings. The zero value is a message without a body.
const (
	NoBody     Framing = iota
	ByLength           // Content-Length bytes, possibly none
	Chunked            // chunked coding
	UntilClose         // responses only: the body ends with the connection
)

// Framing returns how the body of a request ends and, for [ByLength], its length in bytes. A request with both framings,
// with a repeated one, or with another coding than chunked is refused with [ErrMalformed] (NET-31).
func (r *Request) Framing() (Framing, int64, error) {
	f, n, err := framing(r.Header, r.Minor)
	if err == nil && f == UntilClose {
		f = NoBody
	}
	return f, n, err
}

// Framing returns how the body of a response to a method ends and, for [ByLength], its length in bytes (RFC 9112 section
// 6.3). Contradictory framing is refused with [ErrMalformed], also where there is no body.
func (r *Response) Framing(method string) (Framing, int64, error) {
	f, n, err := framing(r.Header, r.Minor)
	if err == nil && (method == "HEAD" || r.Status < 200 || r.Status == 204 || r.Status == 304) {
		return NoBody, 0, nil
	}
	return f, n, err
}

func framing(h Header, minor int) (Framing, int64, error) {
	coding, codings := h.Get("Transfer-Encoding")
	length, lengths := h.Get("Content-Length")
	switch {
	case codings == 0 && lengths == 0:
		return UntilClose, 0, nil
	case codings == 1 && lengths == 0:
		// HTTP/1.0 knows no chunked coding: who sends it there is forwarding what it did not understand.
		if minor == 0 || !EqualFold(coding, "chunked") {
			return 0, 0, ErrMalformed
		}
		return Chunked, 0, nil
	case codings == 0 && lengths == 1 && isDigits(length):
		n, err := strconv.ParseInt(length, 10, 64)
		if err != nil {
			return 0, 0, ErrMalformed
		}
		return ByLength, n, nil
	}
	return 0, 0, ErrMalformed
}
