package proxy

import "github.com/srt-sandbox/srt/proxy/internal/inspect"

// Errors of [FilterRequest.Body]. Test with errors.Is.
var (
	// ErrBodyLimit comes once 64 MiB were read. The request can still be allowed: all of its body is then forwarded (REQ-14).
	ErrBodyLimit = inspect.ErrBodyLimit
	// ErrBodyClosed comes once the filter has returned: the body, if the request goes on, is on its way to the server.
	ErrBodyClosed = inspect.ErrBodyClosed
)

// filterBody is a body as the filter sees it. The goroutine that serves the request does the reading, so that the connection is
// never used by two at once, and not after the decision whatever the filter has left behind.
type filterBody struct {
	reads  chan bodyRead
	closed chan struct{}
}

// bodyRead asks for bytes; until done has the result, into belongs to the reader.
type bodyRead struct {
	into []byte
	done chan<- bodyResult
}

type bodyResult struct {
	n   int
	err error
}

func (b *filterBody) Read(p []byte) (int, error) {
	done := make(chan bodyResult, 1)
	select {
	case <-b.closed:
		return 0, ErrBodyClosed
	default:
	}
	select {
	case b.reads <- bodyRead{p, done}:
		r := <-done
		return r.n, r.err
	case <-b.closed:
		return 0, ErrBodyClosed
	}
}
