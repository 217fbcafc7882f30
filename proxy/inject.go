package proxy

import (
	"bytes"
	"context"
	"io"
	"log/slog"

	"github.com/srt-sandbox/srt/proxy/credential"
	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
)

// outBody is the body of a request as it goes out.
type outBody struct {
	r      io.Reader // nil: none is declared
	length int64     // in bytes, exact; -1: chunked
	// done gives back what is held for the body, once it has been sent or never will be. Nil: nothing is held.
	done func()
}

// release calls done, if there is anything to be given back.
func (b *outBody) release() {
	if b.done != nil {
		b.done()
		b.done = nil
	}
}

// maxReframed is up to which length a body whose length changes is collected, to be sent with its exact length; a longer
// one is sent chunked (CRED-26).
const maxReframed = 1 << 20

// injection returns what real values can be put into requests to a host, or nil.
func (s *Server) injection(h config.Host) *credential.Injection {
	if s.credentials == nil {
		return nil
	}
	return s.credentials.At(h)
}

// inject puts the real values of masked credentials into a request that has been judged: it is the last step before the
// request goes out (CRED-20 to CRED-34). body is nil if none is declared, and length -1 if it is chunked. A refusal is
// reported and comes with its answer; a zero answer means that the body could not be read to its end. Nothing of a refused
// request may go out. Neither the header nor the body that it returns may be shown or logged (CRED-35).
func (s *Server) inject(ctx context.Context, r *request, body io.Reader, length int64) (h httphead.Header, out outBody, a answer, refused bool) {
	i := s.injection(r.host)
	if i == nil {
		s.noteLeft(r, r.header)
		return r.header, outBody{r: body, length: length}, answer{}, false
	}
	if names := i.InTarget(r.path); len(names) > 0 {
		s.log.Debug("proxy: a masked credential in a request target is not replaced; send it in a header",
			"host", r.host.Name, "port", r.port, "credentials", names)
	}
	var signing *credential.Signing
	if r.tunnel { // on the plain path nothing is signed (REQ-2)
		var no *credential.Refused
		signing, no = i.Plan(r.method, r.path, r.header, r.at().hostField(r.host), r.rules.SigV4)
		if no != nil {
			return s.refuseInjection(r, refusal{status: 403, rule: ruleSigV4, reason: no.Reason})
		}
	}
	h, err := i.Header(r.header)
	if err != nil {
		return s.refuseInjection(r, refusal{status: 403, rule: ruleCredentials, reason: reasonControl})
	}
	in := outBody{r: body, length: length}
	if signing == nil {
		out, err = s.reframe(r, i, in)
	} else {
		var no *credential.Refused
		if h, out, no, err = s.sign(ctx, r, signing, h, in); no != nil {
			return s.refuseInjection(r, refusal{status: 403, rule: ruleSigV4, reason: no.Reason})
		}
	}
	if err != nil {
		return nil, outBody{}, answer{}, true
	}
	s.noteLeft(r, h)
	return h, out, answer{}, false
}

// noteLeft says in the debug log which fields of a request still hold what stands for a masked credential: the server will
// answer as to a wrong password, and nothing else tells why.
func (s *Server) noteLeft(r *request, h httphead.Header) {
	if s.credentials == nil || !s.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	why := "its entry in credentials does not have the host in injectHosts"
	if !r.tunnel && !s.plaintextInject {
		why = "this is plain HTTP, which has no real values without credentials.allowPlaintextInject"
	}
	if fields := credential.Left(h); len(fields) > 0 {
		s.log.Debug("proxy: the stand-in for a masked credential goes out as it is: "+why, "host", r.host.Name, "port", r.port, "fields", fields)
	}
}

// The settings and the text of refusals here.
const (
	ruleCredentials = "credentials"
	ruleSigV4       = "credentials.sigv4"
	reasonControl   = "a masked credential holds a control character and cannot be sent in a header"
)

// refuseInjection reports and answers a request that cannot go out with the real values.
func (s *Server) refuseInjection(r *request, f refusal) (httphead.Header, outBody, answer, bool) {
	s.reportRequest(r, f)
	return nil, outBody{}, f.answer(), true
}

// substitution puts real values into one body: *credential.Injection, or *credential.Signing.
type substitution interface {
	LengthKept() bool
	MaxPayload(length int64) int64
	Body(r io.Reader) io.Reader
}

// encoded tells, and notes, that a body is not looked into because it is encoded (CRED-25).
func (s *Server) encoded(r *request) bool {
	_, codings := r.header.Get("Content-Encoding")
	if codings > 0 {
		s.log.Debug("proxy: masked credentials are not looked for in a body with a Content-Encoding", "host", r.host.Name, "port", r.port)
	}
	return codings > 0
}

// reframe substitutes in a body as it streams (CRED-25) and settles how its end is told (CRED-26). A body that is collected
// holds room, as one that is signed does; where there is none it goes out in chunks, so that clients which send slowly neither
// fill the memory nor keep others waiting (TLS-45). An error is that of the body.
func (s *Server) reframe(r *request, u substitution, in outBody) (outBody, error) {
	if in.r == nil || s.encoded(r) {
		return in, nil
	}
	kept := u.LengthKept() // asked first: what Body then does holds to it
	out := outBody{r: u.Body(in.r), length: in.length}
	if in.length <= 0 || kept {
		return out, nil
	}
	out.length = -1
	room := min(u.MaxPayload(in.length), maxReframed)
	if in.length > maxReframed || !s.tryRoom(room) {
		return out, nil
	}
	release := func() { s.giveRoom(room) }
	var start bytes.Buffer
	start.Grow(int(in.length) + bytes.MinRead) // at once, so that no copies are left behind by growing
	n, err := io.Copy(&start, io.LimitReader(out.r, room+1))
	switch {
	case err != nil:
		release()
		return outBody{}, err
	case n <= room:
		s.giveRoom(room - n)
		room = n
		return outBody{r: &start, length: n, done: release}, nil
	}
	out.r, out.done = io.MultiReader(&start, out.r), release // a value has become longer meanwhile
	return out, nil
}

// sign signs the request anew (CRED-32 to CRED-34), whose sentinels in h have been replaced. An error is that of the body.
func (s *Server) sign(ctx context.Context, r *request, g *credential.Signing, h httphead.Header, in outBody) (httphead.Header, outBody, *credential.Refused, error) {
	var out outBody
	var payload []byte
	var no *credential.Refused
	var err error
	if g.Unsigned() || in.r == nil {
		if out, err = s.reframe(r, g, in); out.r != nil && out.length >= 0 {
			g.SetLength(out.length)
		}
	} else if payload, no, err = s.collect(ctx, r, g, in, &out); err == nil && no == nil {
		out.r, out.length = bytes.NewReader(payload), int64(len(payload))
	}
	if err == nil && no == nil {
		h, no = g.Sign(h, payload)
	}
	if err != nil || no != nil {
		out.release()
		return nil, outBody{}, no, err
	}
	return h, out, nil, nil
}

// collect reads a substituted body to its end, and sets what gives its room back. Room is taken for what may come and kept for
// what has come, since a server may take its time to answer. The request waits until there is room.
func (s *Server) collect(ctx context.Context, r *request, g *credential.Signing, in outBody, out *outBody) ([]byte, *credential.Refused, error) {
	room, body := in.length, in.r
	switch {
	case in.length > credential.MaxSigned:
		return nil, g.TooLarge(), nil
	case in.length < 0:
		room = credential.MaxSigned
	}
	if !s.encoded(r) {
		room, body = g.MaxPayload(in.length), g.Body(in.r)
	}
	if err := s.takeRoom(ctx, room); err != nil {
		return nil, nil, err
	}
	out.done = func() { s.giveRoom(room) }
	var whole bytes.Buffer
	if in.length >= 0 {
		whole.Grow(int(in.length) + bytes.MinRead) // at once, so that no copies are left behind by growing
	}
	n, err := io.Copy(&whole, io.LimitReader(body, credential.MaxSigned+1))
	switch {
	case err != nil:
		return nil, nil, err
	case n > credential.MaxSigned:
		return nil, g.TooLarge(), nil
	case n < room:
		s.giveRoom(room - n)
		room = n
	}
	return whole.Bytes(), nil, nil
}
