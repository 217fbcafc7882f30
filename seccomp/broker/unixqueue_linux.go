package broker

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unixQueue is the calls that wait until a peer of AF_UNIX has room. Of those that wait for the same peer one is tried at a
// time, in the order of their coming, as the kernel has it. However many wait, a few goroutines with a hand each try, and
// one looks at the callers. They end when nobody waits, soon. Its zero value is not ready for use: see prepare.
type unixQueue struct {
	server *Server
	limit  int // of those who wait; 0: not asked for yet

	mu       sync.Mutex // held by nobody who waits
	turns    map[unixKey]*unixTurn
	count    int
	runners  map[*worker]struct{}
	free     int // runners that try nobody
	watching bool
	stopped  bool

	due   chan struct{} // something is to be tried
	watch chan struct{} // somebody is to be looked at
}

// unixTurn is those who wait for one peer.
type unixTurn struct {
	waiters []*unixWaiter // in the order of their coming
	busy    bool          // one is being tried
	due     time.Time
	pause   time.Duration
}

// unixWaiter is a call that waits.
type unixWaiter struct {
	c       *call
	peer    *unixPeer
	key     unixKey // of the peer
	once    bool    // it is to be tried once, and not to wait
	start   time.Time
	limit   time.Duration // the caller's own, 0 for none
	restore func()        // gives the socket that limit back

	turn  *unixTurn
	held  bool // one goroutine works on it, and no other may
	next  time.Time
	pause time.Duration
	seen  int
}

// maxWaiters is how many can wait at the same time, waiterShare which part of this process's descriptors one of them may take
// (it holds five), and unixRunners how many are tried at the same time.
const (
	maxWaiters  = 1024
	waiterShare = 20
	unixRunners = 4
)

func (q *unixQueue) prepare(s *Server) {
	q.server, q.turns, q.runners = s, map[unixKey]*unixTurn{}, map[*worker]struct{}{}
	q.due, q.watch = make(chan struct{}, unixRunners), make(chan struct{}, 1)
}

// waitedFor tells whether somebody waits for a peer.
func (q *unixQueue) waitedFor(key unixKey) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.turns[key] != nil
}

// add takes a call on, which it answers and ends. Only a worker calls it. Where there is no room, a call of the process that
// has most of them waiting is given up (EAGAIN): false says that it is this one.
func (q *unixQueue) add(w *unixWaiter) bool {
	if w.once {
		w.key = unixKey{alone: w.c.id} // it waits for nobody
	}
	evicted, ok := q.admit(w)
	if evicted != nil {
		evicted.finish(unix.EAGAIN)
	}
	return ok
}

func (q *unixQueue) admit(w *unixWaiter) (evicted *unixWaiter, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.limit == 0 {
		q.limit = shareOfFiles(maxWaiters, waiterShare)
	}
	if q.stopped {
		return nil, false
	}
	if q.count >= q.limit {
		if evicted = q.greediest(w); evicted == nil {
			return nil, false
		}
		q.remove(evicted)
	}
	if fresh := q.enqueue(w, time.Now()); fresh || !q.watching {
		q.start()
	}
	return evicted, true
}

// enqueue puts a call at the end of its turn, and tells whether that is a new one. q.mu is held.
func (q *unixQueue) enqueue(w *unixWaiter, now time.Time) (fresh bool) {
	t := q.turns[w.key]
	if fresh = t == nil; fresh {
		t = &unixTurn{pause: lookFirst, due: now}
		if !w.once {
			t.due = now.Add(lookFirst) // it has been tried just now
		}
		q.turns[w.key] = t
	}
	w.turn, w.pause, w.next = t, lookFirst, now.Add(lookFirst)
	t.waiters = append(t.waiters, w)
	q.count++
	return fresh
}

// start has the goroutines at work. q.mu is held, by a worker or one of the goroutines: so the pool is waited for still.
func (q *unixQueue) start() {
	if !q.watching {
		q.watching = true
		q.server.pool.wait.Add(1)
		go q.watchCallers()
	}
	if q.free == 0 && len(q.runners) < unixRunners {
		w := &worker{server: q.server}
		q.runners[w] = struct{}{}
		q.free++
		q.server.pool.wait.Add(1)
		go q.run(w)
	}
	for _, c := range [...]chan struct{}{q.due, q.watch} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// greediest is the call to give up for another one: the last of the process that has most of them waiting, nil if that is the
// process of the new one. q.mu is held.
func (q *unixQueue) greediest(newest *unixWaiter) *unixWaiter {
	counts := map[int]int{}
	last := map[int]*unixWaiter{}
	for _, t := range q.turns {
		for _, w := range t.waiters {
			process := w.c.status.tgid
			counts[process]++
			if old := last[process]; !w.held && (old == nil || w.start.After(old.start)) {
				last[process] = w
			}
		}
	}
	most := newest.c.status.tgid
	counts[most]++
	for process, n := range counts {
		if n > counts[most] && last[process] != nil {
			most = process
		}
	}
	if most == newest.c.status.tgid {
		return nil
	}
	return last[most]
}

// remove takes a call out. q.mu is held.
func (q *unixQueue) remove(w *unixWaiter) {
	t := w.turn
	if i := slices.Index(t.waiters, w); i >= 0 {
		t.waiters = slices.Delete(t.waiters, i, i+1)
		q.count--
	}
	if len(t.waiters) == 0 && q.turns[w.key] == t {
		delete(q.turns, w.key)
	}
}

// stop ends all soon, without an answer. It does not wait, and is idempotent.
func (q *unixQueue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	for w := range q.runners {
		w.kill()
	}
	if q.count > 0 {
		q.start() // the watcher ends them
	}
	for range unixRunners {
		select {
		case q.due <- struct{}{}:
		default:
		}
	}
}

// run is the life of a goroutine that tries.
func (q *unixQueue) run(w *worker) {
	defer q.server.pool.wait.Done()
	defer w.dropHand()
	idle := false
	for {
		waiter, pause := q.choose(w, idle)
		if waiter != nil {
			idle = false
			q.try(w, waiter)
			continue
		}
		if pause == 0 {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			idle = pause == patience
		case <-q.due:
		}
		timer.Stop()
	}
}

// choose gives the call that is to be tried next, which is the runner's then, or how long to wait for one, or neither: the
// runner ends. idle says that it has waited for long in vain.
func (q *unixQueue) choose(runner *worker, idle bool) (*unixWaiter, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.stopped, q.count == 0 && idle:
		delete(q.runners, runner)
		q.free--
		return nil, 0
	case q.count == 0:
		return nil, patience
	}
	now := time.Now()
	var best *unixWaiter
	due := 0
	for _, t := range q.turns {
		if t.busy {
			continue
		}
		i := slices.IndexFunc(t.waiters, func(w *unixWaiter) bool { return !w.held })
		if i < 0 {
			continue
		}
		if !t.due.After(now) {
			due++
		}
		if best == nil || t.due.Before(best.turn.due) {
			best = t.waiters[i]
		}
	}
	switch {
	case best == nil:
		return nil, lookLast
	case best.turn.due.After(now):
		return nil, best.turn.due.Sub(now)
	}
	best.held, best.turn.busy = true, true
	if q.free--; due > 1 {
		q.start()
	}
	return best, 0
}

// try tries a call, and ends it unless it is to wait on.
func (q *unixQueue) try(runner *worker, w *unixWaiter) {
	errno, again := q.attempt(runner, w)
	now := time.Now()
	if again && !now.Before(w.next) {
		q.mu.Lock()
		others := q.count
		q.mu.Unlock()
		if verdict := w.look(now, others); verdict != 0 {
			errno, again = verdict, false
		}
	}
	q.mu.Lock()
	t := w.turn
	t.busy, w.held = false, false
	q.free++
	if errno == 0 {
		t.pause, t.due = lookFirst, now // there may be room for the next one, too
	} else {
		t.pause = min(2*t.pause, lookLast)
		t.due = now.Add(t.pause)
	}
	if again = again && !q.stopped; !again {
		q.remove(w)
	}
	q.mu.Unlock()
	if !again {
		w.finish(errno)
	}
}

// attempt is one try with the runner's hand. again says that there is no room still.
func (q *unixQueue) attempt(runner *worker, w *unixWaiter) (errno syscall.Errno, again bool) {
	c := w.c
	c.w = runner
	defer func() {
		c.w = nil
		if cause := recover(); cause != nil {
			runner.dropHand() // it may be in the middle of something
			errno, again = c.broken(fmt.Errorf("srt made a mistake: %v", cause)), false
		}
	}()
	if _, errno := q.server.unix.timeouts.again(w.peer.socket); errno != 0 {
		return errno, false
	}
	errno, stuck := c.tryUnix(w.peer)
	return errno, errno == unix.EAGAIN && (stuck && !c.meddled(w) || !stuck && !w.once)
}

// watchCallers is the life of the goroutine that looks at the callers.
func (q *unixQueue) watchCallers() {
	defer q.server.pool.wait.Done()
	timer := time.NewTimer(lookFirst)
	defer timer.Stop()
	for {
		list, others, next, stopped := q.toLookAt()
		if others == 0 {
			return
		}
		for _, w := range list {
			errno := unix.EINTR
			if !stopped {
				errno = w.look(time.Now(), others)
			}
			q.mu.Lock()
			w.held = false
			if errno != 0 {
				q.remove(w)
			} else if w.next.Before(next) {
				next = w.next
			}
			q.mu.Unlock()
			if errno != 0 {
				w.finish(errno)
			}
		}
		timer.Reset(max(lookFirst, time.Until(next)))
		select {
		case <-timer.C:
		case <-q.watch:
		}
	}
}

// toLookAt gives the calls whose callers are to be looked at, all of them once the queue has been stopped. They are the
// watcher's then. others is how many wait in all, 0 if the watcher ends, and next when to ask again at the latest.
func (q *unixQueue) toLookAt() (list []*unixWaiter, others int, next time.Time, stopped bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count == 0 {
		q.watching = false
		return nil, 0, next, q.stopped
	}
	now := time.Now()
	next = now.Add(lookLast)
	for _, t := range q.turns {
		for _, w := range t.waiters {
			switch {
			case w.held: // whoever tries it looks, too
			case q.stopped || !w.next.After(now):
				w.held = true
				list = append(list, w)
			case w.next.Before(next):
				next = w.next
			}
		}
	}
	return list, q.count, next, q.stopped
}
