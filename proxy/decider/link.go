package decider

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// maxQueued is how many bytes may wait for a decider that does not read (PRX-56): all bodies that may be held, in base64,
	// and 32 MiB of requests.
	maxQueued = 123032918
	// writePiece is how much is written at once, so that what the decider has taken of a long frame does not count.
	writePiece = 256 << 10
)

// waiting is one request that waits for verdicts.
type waiting struct {
	verdicts chan *verdict // room for all that may come: a need_body and an allow or deny
	broken   chan struct{} // closed when a verdict for it broke the protocol, before the link is declared dead
	why      string        // then, the text of PRX-52
}

func newWaiting() *waiting {
	return &waiting{verdicts: make(chan *verdict, 2), broken: make(chan struct{})}
}

// link is the stream to the decider. Its methods may be called from any goroutine.
type link struct {
	stream io.ReadWriteCloser
	log    *slog.Logger
	hosts  *hosts        // set before ready is closed
	ready  chan struct{} // closed when the decider's hello is in
	dead   chan struct{} // closed when nothing is allowed any more; err is set then
	err    *LinkError

	mu     sync.Mutex
	book   *book
	queue  [][]byte // frames that the writer has not begun
	queued int      // bytes that were not written, those of the frame under way included
	wake   chan struct{}
	closed bool
	wg     sync.WaitGroup
}

// newLink begins to talk. It owns stream, and closes it when the link dies.
func newLink(stream io.ReadWriteCloser, log *slog.Logger) *link {
	l := &link{
		stream: stream, log: log, book: newBook(),
		ready: make(chan struct{}), dead: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	hello := ownHello()
	l.queue, l.queued = [][]byte{hello}, len(hello)
	l.wake <- struct{}{}
	l.wg.Add(2)
	go l.write()
	go l.read()
	if out, ok := stream.(OutputWatcher); ok {
		l.wg.Go(func() {
			select {
			case <-out.OutputClosed():
				l.outputEnded(&LinkError{Reason: reasonClosedOut})
			case <-l.dead:
			}
		})
	}
	return l
}

// OutputWatcher is a link that can tell that the decider does not read any more, before anything is written to it: where
// the directions are two pipes the end of one does not show in the other.
type OutputWatcher interface {
	// OutputClosed returns a channel that is closed when nobody reads what is written. It is the same at each call.
	OutputClosed() <-chan struct{}
}

// die declares the link dead. The first reason stands.
func (l *link) die(err *LinkError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	l.err = err
	l.queue, l.queued = nil, 0
	close(l.dead)
	l.log.Debug("decider: the link has ended", "reason", string(err.Reason))
	go func() { _ = l.stream.Close() }() // which may wait for a write that the system does not end
}

// outputEnded declares the link dead because nothing can be written to it any more. A decider that ends closes both directions
// at once, and which of them shows first is chance; so what the other direction holds is read first, for a bounded time: the
// last frame and the end of the stream say more of what happened than a write that failed.
func (l *link) outputEnded(err *LinkError) {
	last := time.NewTimer(lastWords)
	defer last.Stop()
	select {
	case <-l.dead:
	case <-last.C:
		l.die(err)
	}
}

// lastWords bounds the wait for what a decider wrote before it stopped reading.
const lastWords = 100 * time.Millisecond

// close ends the link for reasons of the proxy's own and waits for its goroutines for a bounded time: a stream whose Close
// does not end a Read keeps one.
func (l *link) close() {
	l.die(&LinkError{Reason: reasonOwnShutdown})
	done := make(chan struct{})
	go func() {
		l.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(closePatience):
		l.log.Debug("decider: the stream of the link does not end")
	}
}

// closePatience bounds the wait for the end of the link's goroutines.
const closePatience = time.Second

func (l *link) read() {
	defer l.wg.Done()
	var buf []byte
	greeted := false
	for {
		frame, err := readFrame(l.stream, buf)
		if err != nil {
			l.die(err)
			return
		}
		buf = frame
		message, reason := parseObject(frame)
		if reason == "" {
			if greeted {
				reason = l.verdict(message)
			} else {
				reason = l.greeting(message)
				greeted = true
			}
		}
		if reason != "" {
			l.die(&LinkError{Reason: reason})
			return
		}
	}
}

func (l *link) greeting(v *value) Reason {
	h := parseHello(v)
	if h == nil {
		return reasonBadHello
	}
	l.hosts = h
	close(l.ready)
	return ""
}

// The texts of PRX-52 for a request whose own verdict broke the protocol.
const (
	whyBroke = "request decider: decider broke the protocol"
	whyEarly = "request decider: the decider answered before it was sent the body"
)

// verdict hands a verdict to who waits for it.
func (l *link) verdict(message *value) Reason {
	v, ok := parseVerdict(message)
	if !ok {
		return reasonBadVerdict
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w, reason := l.book.verdict(v.id, v.action)
	switch {
	case reason != "" && w != nil:
		w.why = whyBroke
		if reason == reasonEarly {
			w.why = whyEarly
		}
		close(w.broken)
	case reason == "" && w != nil:
		w.verdicts <- v
	}
	return reason
}

// errDead is a link that takes no more questions.
var errDead = errors.New("the link to the decider has ended")

// ask sends a question and returns its id. Verdicts come to w. Questions go out in the order of their ids (PRX-35). The
// error is errDead.
func (l *link) ask(q *question, w *waiting) (id uint64, err error) {
	err = l.send(func() []byte {
		var ok bool
		if id, ok = l.book.ask(w); !ok {
			return nil
		}
		return q.frame(id)
	})
	if err == nil && id == 0 {
		l.die(&LinkError{Reason: reasonIDs})
		return 0, errDead
	}
	return id, err
}

// sendBody sends a body frame, unless the request has been answered meanwhile; then its verdict is waiting.
func (l *link) sendBody(id uint64, frame []byte) error {
	return l.send(func() []byte {
		if !l.book.sendsBody(id) {
			return nil
		}
		return frame
	})
}

// giveUp says that nobody waits for the verdict of a request any more.
func (l *link) giveUp(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book.giveUp(id)
}

// send queues the frame that next returns, nil being none. It never waits; a decider that does not read is given up on
// (PRX-56).
func (l *link) send(next func() []byte) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return errDead
	}
	frame := next()
	if frame != nil {
		l.queue = append(l.queue, frame)
		l.queued += len(frame)
	}
	queued := l.queued
	l.mu.Unlock()
	if queued > maxQueued {
		l.die(&LinkError{Reason: reasonNotReading(queued)})
		return errDead
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return nil
}

// next takes a frame from the queue; nil: there is none.
func (l *link) next() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	frame := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	return frame
}

func (l *link) write() {
	defer l.wg.Done()
	for {
		select {
		case <-l.wake:
		case <-l.dead:
			return
		}
		for frame := l.next(); frame != nil; frame = l.next() {
			for len(frame) > 0 {
				n, err := l.stream.Write(frame[:min(len(frame), writePiece)])
				if err != nil {
					l.outputEnded(writeError(err))
					return
				}
				frame = frame[n:]
				l.taken(n)
			}
		}
	}
}

func (l *link) taken(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.queued -= n
	}
}
