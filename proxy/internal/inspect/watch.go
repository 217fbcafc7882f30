package inspect

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"
)

// gate is the read deadline of a client's connection, which several goroutines may set: who interrupts a read must not have
// the interruption taken back by the one that reads.
type gate struct {
	conn        net.Conn
	mu          sync.Mutex
	interrupted bool
	idle        bool // between two requests
	draining    bool // Limits.Drain is done
}

// interrupt ends the read that is under way, and those to come until resume.
func (g *gate) interrupt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.interrupted = true
	_ = g.conn.SetReadDeadline(aLongTimeAgo)
}

func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.interrupted = false
	_ = g.conn.SetReadDeadline(time.Time{})
}

// clear takes a deadline away unless the connection is interrupted.
func (g *gate) clear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.interrupted {
		_ = g.conn.SetReadDeadline(time.Time{})
	}
}

// await begins the time between two requests. What has been read already is not affected by a deadline that has passed.
func (g *gate) await(limit time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.idle = true
	deadline := aLongTimeAgo
	if !g.draining {
		deadline = time.Now().Add(limit)
	}
	_ = g.conn.SetReadDeadline(deadline)
}

// came ends the time between two requests.
func (g *gate) came() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.idle = false
	_ = g.conn.SetReadDeadline(time.Time{})
}

// drain is called when Limits.Drain is done.
func (g *gate) drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining = true
	if g.idle {
		_ = g.conn.SetReadDeadline(aLongTimeAgo)
	}
}

func (g *gate) isDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

// watchAfter is how long something may take before the client is watched for leaving meanwhile: most requests are done
// sooner, and watching costs a goroutine and two changes of thread.
const watchAfter = 10 * time.Millisecond

// watch looks for the end of the client's input while nobody else reads it. What the client sends in the meantime stays in
// its reader; once that is full the end can no longer be seen.
type watch struct {
	c       *client
	mu      sync.Mutex
	timer   *time.Timer
	on      bool
	running sync.WaitGroup
}

func (w *watch) init(c *client) { w.c = c }

// start watches from watchAfter on, until stop. Nothing else may read from the client meanwhile.
func (w *watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.on {
		return
	}
	w.on = true
	w.running.Add(1)
	if w.timer == nil {
		w.timer = time.AfterFunc(watchAfter, w.run)
	} else {
		w.timer.Reset(watchAfter)
	}
}

// stop ends the watching. Afterwards the caller may read from the client.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.on {
		return
	}
	w.on = false
	if w.timer.Stop() {
		w.running.Done()
		return
	}
	_ = w.c.conn.SetReadDeadline(aLongTimeAgo)
	w.running.Wait()
	w.c.gate.clear()
}

func (w *watch) run() {
	defer w.running.Done()
	br := w.c.br
	for {
		_, err := br.Peek(br.Buffered() + 1)
		switch {
		case err == nil:
		case errors.Is(err, bufio.ErrBufferFull), isTimeout(err):
			return
		default:
			w.c.leave()
			return
		}
	}
}
