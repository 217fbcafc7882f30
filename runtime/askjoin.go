package runtime

import (
	"context"
	"sync"
)

// joined puts equal questions once (AskJoin). Its mutex is never held while anybody is asked.
type joined struct {
	call AskFunc

	mu      sync.Mutex
	pending map[sameQuestion]*sharedQuestion
}

// sameQuestion is what makes two questions equal.
type sameQuestion struct {
	key, canonical string
	port           uint16
}

// sharedQuestion is a question that is being put, for everybody who asks it.
type sharedQuestion struct {
	waiting int // who has not left, guarded by joined.mu
	cancel  context.CancelFunc
	done    chan struct{} // closed when outcome is there
	outcome result
}

// ask puts a question, or waits for the answer to an equal one. Who has left waits on as well: a refusal is recorded for
// each.
func (j *joined) ask(ctx context.Context, d Destination) (Answer, error) {
	same := sameQuestion{d.Key, d.Canonical, d.Port}
	j.mu.Lock()
	q := j.pending[same]
	if q == nil {
		q = j.put(ctx, same, d)
	}
	q.waiting++
	j.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { j.leave(same, q) })
	<-q.done
	stop()
	return q.outcome.Answer, q.outcome.err
}

// put starts to ask; the mutex is held. The question outlives the context of the first who asks.
func (j *joined) put(ctx context.Context, same sameQuestion, d Destination) *sharedQuestion {
	q := &sharedQuestion{done: make(chan struct{}), outcome: result{err: errAskPanic}}
	ctx, q.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if j.pending == nil {
		j.pending = map[sameQuestion]*sharedQuestion{}
	}
	j.pending[same] = q
	go func() {
		defer func() { // a callback may even end its goroutine
			j.withdraw(same, q)
			q.cancel()
			close(q.done)
		}()
		q.outcome.Answer, q.outcome.err = j.call(ctx, d)
	}()
	return q
}

// leave notes that one who asked has left. A question that nobody waits for is over, and the next equal one is new.
func (j *joined) leave(same sameQuestion, q *sharedQuestion) {
	j.mu.Lock()
	q.waiting--
	last := q.waiting == 0
	j.mu.Unlock()
	if last {
		j.withdraw(same, q)
		q.cancel()
	}
}

// withdraw lets nobody join a question any more.
func (j *joined) withdraw(same sameQuestion, q *sharedQuestion) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pending[same] == q {
		delete(j.pending, same)
	}
}
