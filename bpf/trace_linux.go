package bpf

import (
	"errors"
	"os"
	"sync"
)

// maxQueued is how many refused calls of a sandbox may wait for the one who is told of them.
const maxQueued = 8192

// Trace is the tracing of one sandbox. Safe for concurrent use.
type Trace struct {
	t         *Tracer
	id        uint64
	namespace *os.File // keeps the number of the namespace its own
	lineage   []uint32 // its number, and those of the namespaces that hold it
	use       func(Refused) bool
	queue     refusedQueue
	history   History
	ended     chan struct{}

	mu     sync.Mutex
	closed bool
}

// serve tells of the calls in the queue, until it is closed and empty.
func (tr *Trace) serve() {
	defer close(tr.ended)
	for {
		list, more := tr.queue.take()
		for _, r := range list {
			if !tr.use(r.Refused) && r.missed != nil {
				tr.t.noteMiss(&r)
			}
		}
		if !more {
			return
		}
	}
}

// Close ends the tracing, once everything that was refused before has been told, and gives how many refused calls could not
// be told: the kernel's buffer or the queue was full, or a path could not be read.
func (tr *Trace) Close() (lost uint64, err error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.closed {
		return 0, ErrClosed
	}
	tr.closed = true
	lost, err = tr.t.end(tr)
	dropped := tr.queue.close()
	<-tr.ended
	return lost + dropped, errors.Join(err, tr.namespace.Close())
}

// noteMiss has the program be silent for a while about a call that looked for something in vain. Where that fails it is told
// again, which costs time alone.
func (t *Tracer) noteMiss(r *queuedRefusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		_ = element(cmdMapUpdate, t.loader.maps[mapMisses], r.missed, le.AppendUint64(nil, uint64(r.Monotonic)))
	}
}

// end takes a sandbox out of the kernel's map, and reads what it has left.
func (t *Tracer) end(tr *Trace) (lost uint64, err error) {
	t.mu.Lock()
	r, closed := t.reader, t.closed
	if !closed {
		key, value := words(tr.lineage[0]), make([]byte, tracedSize)
		err = errors.Join(element(cmdMapLookup, t.loader.maps[mapTraced], key, value),
			element(cmdMapDelete, t.loader.maps[mapTraced], key, nil))
		lost = le.Uint64(value[tracedLost:])
		tr.history.noteGaps(le.Uint32(value[tracedGaps:]))
	}
	t.mu.Unlock()
	if !closed {
		r.settle()
	}
	t.mu.Lock()
	delete(t.traces, tr.id)
	t.rest()
	t.mu.Unlock()
	return lost, err
}

// settle takes what has been written by now out of the kernel's buffer.
func (t *Tracer) settle() {
	t.mu.Lock()
	r, closed := t.reader, t.closed
	t.mu.Unlock()
	if !closed {
		r.settle()
	}
}

// readGaps asks how many changes of a sandbox found no room. What the end of the trace has found out stays.
func (t *Tracer) readGaps(tr *Trace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	value := make([]byte, tracedSize)
	if element(cmdMapLookup, t.loader.maps[mapTraced], words(tr.lineage[0]), value) == nil && le.Uint64(value) == tr.id {
		tr.history.noteGaps(le.Uint32(value[tracedGaps:]))
	}
}

// queuedRefusal is a refused call, and by what the program recognises it (event.missed).
type queuedRefusal struct {
	Refused
	missed []byte
}

// refusedQueue parts the one reader of all sandboxes from those who are told, so that a slow one delays no other.
type refusedQueue struct {
	mu      sync.Mutex
	ready   sync.Cond
	list    []queuedRefusal
	dropped uint64
	closed  bool
	busy    bool // some have been taken, and not all of them been told
}

func (q *refusedQueue) put(r queuedRefusal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.list) >= maxQueued {
		q.dropped++
		return
	}
	q.list = append(q.list, r)
	q.ready.Signal()
}

func (q *refusedQueue) drop(n uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropped += n
}

// take waits for calls, and tells whether there may be more.
func (q *refusedQueue) take() (list []queuedRefusal, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy = false
	for len(q.list) == 0 && !q.closed {
		q.ready.Wait()
	}
	list, q.list = q.list, nil
	q.busy = len(list) > 0
	return list, !q.closed
}

// close ends the queue, and gives how many calls did not get into it.
func (q *refusedQueue) close() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Signal()
	return q.dropped
}
