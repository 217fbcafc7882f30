package broker

import "sync"

// maxReports is how many reports may wait.
const maxReports = 1024

// reports hands reports on, one after another in a goroutine of its own, so that no call waits for whoever hears of it. A
// sandbox that has nothing to report has neither that goroutine nor room for reports. It is safe for concurrent use.
type reports struct {
	tell func(Denial) // nil: nobody wants to hear of any

	mu      sync.Mutex
	waiting []Denial
	telling bool
	dropped uint64
	done    sync.WaitGroup
}

// add has a report handed on, unless too many wait.
func (r *reports) add(d Denial) {
	if r.tell == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) >= maxReports {
		r.dropped++
		return
	}
	r.waiting = append(r.waiting, d)
	if !r.telling {
		r.telling = true
		r.done.Go(r.run)
	}
}

// run hands on what waits.
func (r *reports) run() {
	for {
		r.mu.Lock()
		if len(r.waiting) == 0 {
			r.waiting, r.telling = nil, false
			r.mu.Unlock()
			return
		}
		d := r.waiting[0]
		r.waiting = r.waiting[1:]
		r.mu.Unlock()
		r.tell(d)
	}
}

// finish waits until all are handed on. Nothing is added any more.
func (r *reports) finish() { r.done.Wait() }

func (r *reports) lost() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}
