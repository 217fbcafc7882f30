package inspect

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// Why an exchange failed. Test with errors.Is.
var (
	// ErrClientGone is a client that has left, or has sent nothing of an unfinished body for [Limits.Stall].
	ErrClientGone = errors.New("the client has left")
	// ErrBodyLimit is a body of which [Limits.BodyKept] bytes have been read; the rest is still forwarded (REQ-14).
	ErrBodyLimit = errors.New("the request body is longer than what can be looked at; the rest is forwarded unseen")
	// ErrBodyMalformed is a body that is no valid chunked coding. The request is answered as malformed (TLS-30), whatever
	// the handler returns.
	ErrBodyMalformed = errors.New("the request body is no valid chunked coding")
	// ErrBodyClosed is a read of a body by a handler that has returned.
	ErrBodyClosed = errors.New("the request is no longer being judged; read its body before")
	// ErrNoResponse is an upstream connection that ended before a response head.
	ErrNoResponse = errors.New("the upstream server closed the connection without a response")
	// ErrBadResponse is a response that cannot be relayed (TLS-35).
	ErrBadResponse = errors.New("the upstream server sent a response that cannot be relayed")
	// ErrOutgoing is a request of the handler's that cannot be written: an invalid name or value, no single Host, a body
	// that is not as long as announced. Nothing is sent that two parsers could read differently.
	ErrOutgoing = errors.New("the request to be forwarded cannot be written")
)

// Limits are the bounds of a connection. The zero value of a field means the one of the rule that is named.
type Limits struct {
	// FirstHead is the time for the first head, from the call of [Serve] on (TLS-43: 10 s after the ClientHello; a caller
	// that shook hands takes off what that took). A negative value leaves no time.
	FirstHead time.Duration
	// Idle is the time from a response to the next complete head (TLS-43: 6 s).
	Idle time.Duration
	// Cap is the time from the orderly close of an idle connection to the hard cut (TLS-43: as long as the limit was).
	Cap time.Duration
	// Stall is how long an unfinished upload, or queued bytes of a response, may stay unmoved. It is looked at five times
	// in this time, so that up to a fifth may be added (TLS-44: 300 s).
	Stall time.Duration
	// Linger and RefusalLinger are how long input is read and dropped after the last response, and after an [Answer]
	// (TLS-46: 5 s and 1 s).
	Linger, RefusalLinger time.Duration
	// Head is the longest request head in bytes, its final empty line included (TLS-30: 16 KiB).
	Head int
	// BodyKept is how many bytes of a body a handler may read before the request goes out (REQ-14: 64 MiB).
	BodyKept int64
	// Drain, if not nil, asks for an orderly end once it is done: an idle connection closes at once, another after the
	// response that is under way.
	Drain context.Context
}

// Request is a request as the client sent it.
type Request struct {
	*httphead.Request
	// Framing is NoBody, ByLength or Chunked; Length is in bytes, for ByLength.
	Framing httphead.Framing
	Length  int64
	// Body is nil if none is declared. A declared length of 0 is a body.
	Body *Body
}

// Outgoing is a request as it goes upstream, as HTTP/1.1.
type Outgoing struct {
	// Target is the request target; empty: as the client spelled it. The method is the client's.
	Target string
	// Header is complete and in order, with exactly one Host. Fields that frame the message or belong to one connection,
	// and Expect, are this package's and left out if they are there.
	Header httphead.Header
	// Body is what is sent as the body, usually [Body.Stream] or something that reads it; nil: none is declared. Length is
	// its exact length in bytes, or -1 for chunked coding. Body is read by one goroutine, after Judge has returned.
	Body   io.Reader
	Length int64
	// Key is comparable. A request goes out on the upstream connection of the one before it if their keys are equal; another
	// key closes that connection.
	Key any
	// Dial makes the upstream connection if there is none to use. The context ends when the client leaves.
	Dial func(ctx context.Context) (net.Conn, error)
	// Response, if not nil, is called once with the end-to-end fields of the final response, just before the head goes to
	// the client; what it returns is sent. It may change the slice.
	Response func(status int, h httphead.Header) httphead.Header
	// Take, if not nil, is handed the connection and what has been read of it, without deadlines; all else is ignored. It
	// runs before Serve returns, which then reports that the connection was taken.
	Take func(conn net.Conn, br *bufio.Reader)
	// Upgrade, if not empty, is the protocol that the client's Upgrade field asks for and that is asked for upstream. If the
	// server switches to it (101), bytes are relayed both ways until both have ended; any other response is an ordinary
	// one.
	Upgrade string
}

// Answer is a complete response. It is sent as it is, and the connection is closed after it (TLS-46). Whether it has a
// body after HEAD is for whoever makes it.
type Answer []byte

// Malformed is a request that cannot be read for certain (TLS-30).
type Malformed struct {
	// What is wrong, in a few words without details that the client chose.
	What string
	// Target: it is the request target that holds a space, a control character or a byte outside ASCII.
	Target bool
	// Method and Spelled are the method and the target as they were sent, as far as they are known. Both come from a request
	// that nobody parsed to its end: they may hold any byte but LF, and Spelled any length up to [Limits.Head].
	Method, Spelled string
}

// Handler decides about requests. Its methods are called from the goroutine of [Serve], one at a time.
type Handler interface {
	// Judge decides about one request: exactly one of its results is set, or neither, which closes the connection
	// without an answer. The context ends when the client leaves, which is looked for after about 10 ms, or when that of
	// Serve does. The request must not be used once Judge has returned, but by what it has put into Outgoing.
	Judge(ctx context.Context, r *Request) (*Outgoing, Answer)
	// Malformed returns the answer to what is no request (TLS-31); nil: just close.
	Malformed(m Malformed) Answer
	// Failed returns the answer to a request that was let through and for which there is no response head (TLS-38); nil:
	// just close. The error is Dial's, or matches one of [ErrNoResponse], [ErrBadResponse] and [ErrOutgoing].
	Failed(r *Request, err error) Answer
}
