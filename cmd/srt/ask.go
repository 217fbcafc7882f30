package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/srt-sandbox/srt/runtime"
)

const (
	// defaultAskTimeout is how long a question of --ask stands.
	defaultAskTimeout = 60 * time.Second
	// maxQuestions is how many different hosts are asked about or wait for that at once. A person answers one at a time; more
	// than a few are not meant to be read.
	maxQuestions = 8
	// keptFor is how long an answer waits for a call that the question itself has interrupted. The kernel makes such a call
	// again as soon as its process goes on.
	keptFor = 10 * time.Second
	// refusedFor is how long a refusal goes for the thread that was refused: programs try the other addresses of a name at
	// once, of the other family above all, and that is one question to a person.
	refusedFor = 2 * time.Second
)

// Why a host is refused that nobody was asked about, for the program and the record.
const (
	reasonTooMany = "too many hosts at once to ask about"
	reasonNoMore  = "no more questions are wanted in this run"
)

// The ends of a question without an answer: the host is refused with "permission prompt failed".
var (
	errNoAnswer    = errors.New("nobody answered in time")
	errInterrupted = errors.New("srt was interrupted")
	errEnded       = errors.New("the command has ended")
)

// target is what a question is about.
type target struct {
	host string // canonical
	port uint16
}

// decision is what the person decides. The zero value refuses this once.
type decision struct {
	allow    bool
	remember bool   // for this target, until srt ends
	waiting  bool   // refuse everything that waits to be asked, too
	last     bool   // refuse everything else that would ever be asked, too
	reason   string // of a refusal that the person had no part in
}

// dialog puts a question to the person and waits for the answer, an error, or the end of the context.
type dialog interface {
	put(ctx context.Context, t target, command string) (decision, error)
}

// asker decides about undecided hosts by asking the person at the terminal: one question at a time, equal ones once. It is
// safe for concurrent use.
type asker struct {
	dialog   dialog
	attached chan struct{} // closed when there is a command whose terminal can be borrowed

	ctx context.Context // ends with the command
	end context.CancelCauseFunc

	worker sync.WaitGroup

	mu       sync.Mutex
	queue    []*question // the first is being put if working
	working  bool
	cancel   context.CancelCauseFunc // of the question that is being put; nil if none is
	settled  map[target]bool         // for the rest of the run: allowed or not
	refusing bool                    // whatever is not settled, too
	kept     map[call]keptReply
}

// question is a target and who waits for its answer.
type question struct {
	target
	command string
	put     bool // it is being put
	waiters []*waiter
}

// waiter is one connection that waits.
type waiter struct {
	thread int // that connects, 0 for a client of a proxy
	left   bool
	reply  chan reply
}

// reply is what one connection is told.
type reply struct {
	runtime.Answer
	err error
}

// call is a connect(2) of a program that knows no proxy.
type call struct {
	target
	thread int
}

// keptReply is for the next call of the same: one that ended because the question has paused its process is made again,
// and one that was refused may be.
type keptReply struct {
	reply
	until time.Time
}

func newAsker(d dialog) *asker {
	k := &asker{dialog: d, attached: make(chan struct{}), settled: map[target]bool{}, kept: map[call]keptReply{}}
	k.ctx, k.end = context.WithCancelCause(context.Background())
	return k
}

// ask is a runtime.AskFunc.
func (k *asker) ask(ctx context.Context, d runtime.Destination) (runtime.Answer, error) {
	t := target{d.Canonical, d.Port}
	k.mu.Lock()
	if r, known := k.known(call{t, d.PID}); known {
		k.mu.Unlock()
		return r.Answer, r.err
	}
	q := k.queued(t, d)
	if q == nil {
		k.mu.Unlock()
		return runtime.Answer{Reason: reasonTooMany}, nil
	}
	w := &waiter{thread: d.PID, reply: make(chan reply, 1)}
	// A thread's call that has come back, between two questions about it, is the one that was interrupted.
	q.waiters = slices.DeleteFunc(q.waiters, func(o *waiter) bool { return o.left && o.thread != 0 && o.thread == w.thread })
	q.waiters = append(q.waiters, w)
	k.mu.Unlock()
	select {
	case r := <-w.reply:
		return r.Answer, r.err
	case <-ctx.Done():
		k.leave(q, w)
		return runtime.Answer{}, context.Cause(ctx)
	}
}

// known gives what needs no question; the mutex is held.
func (k *asker) known(c call) (r reply, known bool) {
	if allowed, ok := k.settled[c.target]; ok {
		return reply{Answer: runtime.Answer{Allow: allowed}}, true
	}
	if r, ok := k.kept[c]; ok && time.Now().Before(r.until) {
		if r.Allow {
			delete(k.kept, c) // for this one alone
		}
		return r.reply, true
	}
	switch {
	case k.refusing:
		return reply{Answer: runtime.Answer{Reason: reasonNoMore}}, true
	case k.ctx.Err() != nil:
		return reply{err: context.Cause(k.ctx)}, true
	}
	return reply{}, false
}

// queued gives the question about a target, a new one if there is none yet, or nil if there are too many; the mutex is held.
func (k *asker) queued(t target, d runtime.Destination) *question {
	for _, q := range k.queue {
		if q.target == t {
			return q
		}
	}
	if len(k.queue) >= maxQuestions {
		return nil
	}
	q := &question{target: t, command: d.CleanCommand(maxCommandShown)}
	k.queue = append(k.queue, q)
	if !k.working {
		k.working = true
		k.worker.Go(k.work)
	}
	return q
}

// leave notes that a connection has gone. A question that nobody waits for is withdrawn, unless a call may come back for its
// answer.
func (k *asker) leave(q *question, w *waiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w.left = true
	for _, other := range q.waiters {
		if !other.left || q.put && other.thread != 0 {
			return
		}
	}
	if q.put {
		k.cancel(errEnded)
		return
	}
	k.drop(q)
}

// drop takes a question out of the queue; the mutex is held.
func (k *asker) drop(q *question) {
	k.queue = slices.DeleteFunc(k.queue, func(other *question) bool { return other == q })
}

// work puts the questions of the queue until there is none.
func (k *asker) work() {
	select {
	case <-k.attached:
	case <-k.ctx.Done():
	}
	for {
		q, ctx := k.next()
		if q == nil {
			return
		}
		d, err := decision{}, context.Cause(ctx)
		if err == nil {
			d, err = k.dialog.put(ctx, q.target, q.command)
		}
		k.settle(q, d, err)
	}
}

// next gives the question to be put now, nil if there is none.
func (k *asker) next() (*question, context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.queue) == 0 {
		k.working = false
		return nil, nil
	}
	q := k.queue[0]
	q.put = true
	ctx, cancel := context.WithCancelCause(k.ctx)
	k.cancel = cancel
	return q, ctx
}

// settle tells everybody who waits for a question, and all others if there are to be no more.
func (k *asker) settle(q *question, d decision, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancel(nil)
	k.cancel = nil
	k.drop(q)
	if err == nil && d.remember {
		k.settled[q.target] = d.allow
	}
	k.tell(q, reply{runtime.Answer{Allow: d.allow, Reason: d.reason}, err})
	switch {
	case err != nil:
	case d.last:
		k.refusing = true
		k.refuseWaiting(reply{Answer: runtime.Answer{Reason: reasonNoMore}})
	case d.waiting:
		k.refuseWaiting(reply{})
	}
}

// refuseWaiting refuses what waits to be asked; the mutex is held.
func (k *asker) refuseWaiting(r reply) {
	k.queue = slices.DeleteFunc(k.queue, func(q *question) bool {
		if !q.put {
			k.tell(q, r)
		}
		return !q.put
	})
}

// tell gives everybody who waits for a question the reply; the mutex is held.
func (k *asker) tell(q *question, r reply) {
	now := time.Now()
	for c, old := range k.kept {
		if now.After(old.until) {
			delete(k.kept, c)
		}
	}
	for _, w := range q.waiters {
		if !w.left {
			w.reply <- r
		}
		switch {
		case w.thread == 0:
		case w.left:
			k.kept[call{q.target, w.thread}] = keptReply{r, now.Add(keptFor)}
		case !r.Allow:
			k.kept[call{q.target, w.thread}] = keptReply{r, now.Add(refusedFor)}
		}
	}
}

// interrupt ends the question that is being put and all that wait, because srt was told to end the command.
func (k *asker) interrupt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cancel != nil {
		k.cancel(errInterrupted)
	}
	k.refuseWaiting(reply{err: errInterrupted})
}

// close ends all questions, because the command has ended, and waits until the terminal is given back.
func (k *asker) close() {
	k.end(errEnded)
	k.worker.Wait()
}
