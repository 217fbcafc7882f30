package proxy

import (
	"context"
	"slices"
	"strconv"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// readBody prepares e.body for those who read the body before it goes out, and reports whether one is declared: a length of 0
// is a body too (REQ-14).
func (c *client) readBody(e *exchange) bool {
	if e.body == nil && e.framing != httphead.NoBody {
		e.body = &plainBody{client: c, exchange: e, rest: newBody(c.br, e.framing, e.length)}
	}
	return e.body != nil
}

// injectPlain puts the real values of masked credentials into a request that has been judged, where plain requests are to
// have them (CRED-20). It also refuses a body that was read before and is none. What it puts into e must not be logged.
func (c *client) injectPlain(e *exchange) (a answer, refused bool) {
	if c.injects(&e.request) {
		a, refused = c.substitutePlain(e)
	} else {
		c.noteLeft(&e.request, e.req.Header)
	}
	if e.body != nil && e.body.malformed() {
		a, refused = answer400, true
	}
	if refused {
		e.keep = false
		e.gone = e.gone || a.status == ""
	}
	return a, refused
}

func (c *client) substitutePlain(e *exchange) (a answer, refused bool) {
	var in outBody
	if c.readBody(e) {
		in = outBody{r: e.body.stream(), length: e.length}
		if e.framing == httphead.Chunked {
			in.length = -1
		}
	}
	var h httphead.Header
	var out outBody
	c.watched(e, func(ctx context.Context) error { // part of the body may be read
		h, out, a, refused = c.inject(ctx, &e.request, in.r, in.length)
		return nil
	})
	if refused {
		return a, true
	}
	e.req.Header = h
	if e.body != nil {
		e.substituted, e.done = out.r, out.done
		e.reframe(out.length)
	}
	return answer{}, false
}

// reframe sets how the end of the body is told to the server: by its length, or by chunks if that is -1.
func (e *exchange) reframe(length int64) {
	if length < 0 {
		e.req.Header = slices.DeleteFunc(slices.Clone(e.req.Header), func(f httphead.Field) bool { return f.Is("Content-Length") })
		e.framing, e.length = httphead.Chunked, 0
		return
	}
	if e.framing == httphead.ByLength && e.length == length {
		return
	}
	value := strconv.FormatInt(length, 10)
	h := slices.Clone(e.req.Header)
	if at := slices.IndexFunc(h, func(f httphead.Field) bool { return f.Is("Content-Length") }); at >= 0 {
		h[at].Value = value
	} else {
		h = append(h, httphead.Field{Name: "Content-Length", Value: value})
	}
	e.req.Header, e.framing, e.length = h, httphead.ByLength, length
}
