package decider

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"time"
)

// asking is one request that is put to the decider.
type asking struct {
	*proxyRun
	id     uint64
	w      *waiting
	method string
	body   io.Reader // nil: none is declared
	length int64     // of the body in bytes; -1: unknown
}

// errLeft is a client that has left, or whose body cannot be read: nobody waits for an answer.
var errLeft = errors.New("nobody waits for the verdict")

// refused is a request that the decider step refuses with an answer of PRX-65.
type refused struct {
	mark mark
	text string
}

// Error returns the text that the client gets.
func (r *refused) Error() string { return r.text }

func unavailable(text string) error { return &refused{markUnavailable, text} }

// ask asks about a request and returns an allow or a deny. Errors are *refused and errLeft.
func (p *proxyRun) ask(ctx context.Context, q *question, method string, body io.Reader, length int64) (*verdict, error) {
	a := &asking{proxyRun: p, w: newWaiting(), method: method, body: body, length: length}
	var err error
	if a.id, err = p.link.ask(q, a.w); err != nil {
		return nil, unavailable("request decider unavailable")
	}
	v, err := a.await(ctx, nil)
	if err != nil || v.action != actionNeedBody {
		return v, err
	}
	held := a.reservation(v.max)
	if !p.held.reserve(held) {
		p.link.giveUp(a.id)
		return nil, unavailable("request decider: too many request bodies held for inspection")
	}
	defer p.held.release(held)
	return a.show(ctx, v.max)
}

// reservation is how many bytes of the body are held at most (PRX-55).
func (a *asking) reservation(limit int64) int64 {
	switch {
	case a.body == nil:
		return 0
	case a.length >= 0:
		return min(a.length, limit)
	}
	return limit
}

// shown is the end of the reading of a body.
type shown struct {
	frame []byte
	any   bool // it is not empty
	err   error
}

// show sends the body and returns the second verdict, or the denial that came before it (PRX-53).
func (a *asking) show(ctx context.Context, limit int64) (*verdict, error) {
	bodyless := a.body != nil && (a.method == "GET" || a.method == "HEAD" || a.method == "OPTIONS")
	if bodyless {
		limit = 0 // a body that a server might not expect is not shown, only whether there is one (PRX-54)
	}
	done := make(chan shown, 1)
	if a.body == nil {
		done <- shown{frame: bodyFrame(a.id, nil)}
	} else {
		go func() { done <- a.read(limit) }()
	}
	v, err := a.await(ctx, done)
	if v != nil || err != nil {
		return v, err
	}
	got := <-done
	switch {
	case got.err != nil:
		a.link.giveUp(a.id)
		return nil, errLeft
	case bodyless && got.any:
		a.link.giveUp(a.id)
		return nil, &refused{markBodyless, "a " + a.method + " request must not have a body here"}
	}
	if a.link.sendBody(a.id, got.frame) != nil {
		return nil, a.dead()
	}
	return a.await(ctx, nil)
}

// await waits for the next verdict: for as long as read takes, or with the timer if read is nil (PRX-51). Both results are
// nil when read has a result, which is put back.
func (a *asking) await(ctx context.Context, read chan shown) (*verdict, error) {
	var expiry <-chan time.Time
	if read == nil {
		timer := time.NewTimer(a.verdictTimeout)
		defer timer.Stop()
		expiry = timer.C
	}
	select {
	case v := <-a.w.verdicts:
		return v, nil
	case <-a.link.dead:
		select {
		case v := <-a.w.verdicts: // it came before the end
			return v, nil
		default:
			return nil, a.dead()
		}
	case got := <-read:
		read <- got
		return nil, nil //nolint:nilnil // neither came
	case <-expiry:
		a.link.giveUp(a.id)
		return nil, unavailable("request decider: decider timed out")
	case <-ctx.Done():
		a.link.giveUp(a.id)
		return nil, errLeft
	}
}

// dead is why a pending request is refused when the link has ended.
func (a *asking) dead() error {
	<-a.link.dead
	select {
	case <-a.w.broken:
		return unavailable(a.w.why)
	default:
		return unavailable("request decider: " + string(a.link.err.Reason))
	}
}

// bodyPiece is how much is read at once. It is a multiple of three, so that pieces in base64 can be joined.
const bodyPiece = 48 << 10

// read reads up to limit bytes of the body, and one more to know whether there are more, into a frame.
func (a *asking) read(limit int64) shown {
	expected := limit
	if a.length >= 0 {
		expected = min(expected, a.length)
	}
	frame := bodyStart(a.id, min(expected, 1<<20))
	buf := make([]byte, min(bodyPiece, limit+1))
	kept, left, cut := 0, limit, false
	for !cut {
		n, err := a.body.Read(buf[kept:])
		kept += n
		if int64(kept) > left {
			kept, cut = int(left), true
		}
		end := cut || errors.Is(err, io.EOF)
		if err != nil && !end {
			return shown{err: err}
		}
		whole := kept
		if !end {
			whole -= kept % 3
		}
		frame = base64.StdEncoding.AppendEncode(frame, buf[:whole])
		left -= int64(whole)
		kept = copy(buf, buf[whole:kept])
		if end {
			break
		}
	}
	return shown{frame: bodyEnd(frame, cut), any: left < limit || cut}
}

// bodyStart is the frame of a body up to its data.
func bodyStart(id uint64, expected int64) []byte {
	frame := beginFrame(make([]byte, 0, 64+base64.StdEncoding.EncodedLen(int(expected))))
	frame = append(frame, `{"t":"body","id":`...)
	frame = strconv.AppendUint(frame, id, 10)
	return append(frame, `,"data":"`...)
}

func bodyEnd(frame []byte, cut bool) []byte {
	frame = append(frame, '"')
	if cut {
		frame = append(frame, `,"cut":true`...)
	}
	return finishFrame(append(frame, '}'))
}

// bodyFrame is a whole frame for data that is there.
func bodyFrame(id uint64, data []byte) []byte {
	return bodyEnd(base64.StdEncoding.AppendEncode(bodyStart(id, int64(len(data))), data), false)
}
