package broker

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/notify"
)

// pool is the workers. One of them receives. It performs the call itself and receives again, so that one caller after
// another is served without a switch between threads. While a hand performs and answers a call, the receiver waits for the
// next one already. Another worker takes its place when
//
//   - a further call waits, and the hand has not answered the last one,
//   - it knows that it is going to wait (the opening of a FIFO, the start of a hand), or
//   - its call has taken a whole beat of the pacemaker, whatever it waits for.
type pool struct {
	server *Server
	fd     int // the listener's

	mu        sync.Mutex
	workers   map[*worker]struct{}
	parked    []*worker // without work, the one that worked last at the end
	receiving bool      // one is, or is on its way, or is holder
	holder    *worker   // the receiver while it is in the middle of a call and does not wait for the next one
	closing   bool
	finished  bool // run has returned: the listener may be closed
	err       error
	calls     uint64 // that were received
	beating   bool   // the pacemaker runs
	wait      sync.WaitGroup
}

const (
	// beat is how long a call can keep others from being received, once or twice that.
	beat = 2 * time.Millisecond
	// patience is how long a worker without work is kept.
	patience = time.Second
)

func (p *pool) prepare(s *Server) {
	p.server, p.fd, p.workers = s, int(s.config.Listener.File().Fd()), map[*worker]struct{}{}
}

// run starts the first worker and waits until none is left.
func (p *pool) run() error {
	p.mu.Lock()
	if !p.closing {
		p.promote()
	}
	p.mu.Unlock()
	p.wait.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing, p.finished = true, true
	return p.err
}

// close ends all workers.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return nil
	}
	p.dismiss()
	err := p.server.config.Listener.Stop()
	for w := range p.workers {
		w.kill()
	}
	return err
}

// dismiss lets no worker take another call. p.mu is held.
func (p *pool) dismiss() {
	p.closing = true
	p.server.unix.queue.stop()
	for _, w := range p.parked {
		w.wake <- struct{}{}
	}
	p.parked = nil
}

// promote makes another worker the receiver, if there is none. p.mu is held.
func (p *pool) promote() {
	if p.receiving || p.closing {
		return
	}
	if n := len(p.parked); n > 0 {
		w := p.parked[n-1]
		p.parked = p.parked[:n-1]
		p.receiving = true
		w.wake <- struct{}{}
		return
	}
	if len(p.workers) >= p.server.config.Workers {
		return // the first that is done receives
	}
	w := &worker{server: p.server, wake: make(chan struct{}, 1)}
	p.workers[w] = struct{}{}
	p.receiving = true
	p.wait.Add(1)
	go w.run()
}

// taken says that the receiver has taken a call. It remains the receiver until it hands that on, or the pacemaker does.
func (p *pool) taken(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.role, p.holder = true, w
	p.calls++
	p.watch()
}

// watch has the pacemaker run. p.mu is held.
func (p *pool) watch() {
	if !p.beating {
		p.beating = true
		p.wait.Add(1)
		go p.pace()
	}
}

// keeps tells whether a worker is the receiver still. p.mu is held.
func (p *pool) keeps(w *worker) bool {
	w.role = w.role && p.holder == w
	return w.role
}

// await says that a worker in the middle of a call waits for the next one, and tells whether it can: only the receiver may.
func (p *pool) await(w *worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.keeps(w) {
		return false
	}
	p.holder = nil
	return true
}

// awaited ends await.
func (p *pool) awaited(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holder = w
	p.watch()
}

// handOn makes another worker the receiver in place of one that is going to do what may take long: now, or when a call
// waits already, or else when the pacemaker says so.
func (p *pool) handOn(w *worker, now bool) {
	if w.role && !now {
		now = p.waiting()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keeps(w) {
		w.role, w.ready, p.holder, p.receiving = false, false, nil, false
	}
	p.watch()
	if now {
		p.promote()
	}
}

// waiting tells whether a further call waits to be received.
func (p *pool) waiting() bool {
	fds := [...]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds[:], 0)
	return err != nil || n > 0 && fds[0].Revents&unix.POLLIN != 0
}

// pace is the pacemaker. It ends when a beat brought no call.
func (p *pool) pace() {
	defer p.wait.Done()
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	last := uint64(0)
	for range ticker.C {
		if !p.beats(&last) {
			return
		}
	}
}

// beats is one beat. It tells whether there is to be another.
func (p *pool) beats(last *uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls != *last && !p.closing {
		*last = p.calls
		return true
	}
	if p.holder != nil { // and still in its last call
		p.holder, p.receiving = nil, false
	}
	p.promote()
	p.beating = false
	return false
}

// next lets a worker without work wait for some. It tells whether to receive, else the worker ends.
func (p *pool) next(w *worker) bool {
	p.mu.Lock()
	switch {
	case p.closing:
		p.mu.Unlock()
		return false
	case p.keeps(w):
		p.holder = nil
		p.mu.Unlock()
		return true
	case !p.receiving:
		p.receiving = true
		p.mu.Unlock()
		return true
	}
	p.parked = append(p.parked, w)
	p.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.wake:
	case <-timer.C:
		if p.leave(w) {
			return false
		}
		<-w.wake
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closing
}

// leave takes a worker off the list of those without work; false says that it has been chosen for work just now.
func (p *pool) leave(w *worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, parked := range p.parked {
		if parked == w {
			p.parked = append(p.parked[:i], p.parked[i+1:]...)
			return true
		}
	}
	return false
}

// ended takes a worker off the list. With an error of the listener it is the receiver, and there is nothing left to be
// received by anybody.
func (p *pool) ended(w *worker, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.workers, w)
	if err == nil {
		return
	}
	if !errors.Is(err, notify.ErrGone) && !errors.Is(err, notify.ErrStopped) && p.err == nil {
		p.err = err
	}
	p.dismiss()
}
