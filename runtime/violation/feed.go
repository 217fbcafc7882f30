package violation

import (
	"context"
	"sync"
)

// Feed is one reader's view of a store: what was held when it was made, then each new record, in order. A reader that lags
// by more than the feed's limit misses the oldest, which shows as a gap in Seq; producers never wait for it (LIB-52).
// Make one with [Store.Feed]. Next is for one goroutine at a time.
type Feed struct {
	store *Store
	limit int

	mu      sync.Mutex
	pending []Record
	first   int // of pending that is not delivered yet
	ended   bool
	wake    chan struct{} // has a value when there may be something to see
}

// Feed makes a feed that holds at most limit records that the reader has not taken yet; limit below 1 is [Held]. It takes
// memory for what is pending alone. Of a closed store the feed ends after what is held. Call Stop when done.
func (s *Store) Feed(limit int) *Feed {
	if limit < 1 {
		limit = Held
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Feed{store: s, limit: limit, wake: make(chan struct{}, 1), pending: s.held.newest(limit), ended: s.closed}
	if !s.closed {
		if s.feeds == nil {
			s.feeds = map[*Feed]struct{}{}
		}
		s.feeds[f] = struct{}{}
	}
	return f
}

// Next waits for the next record. ok is false when ctx has ended, when the feed was stopped, and when the store was closed
// and everything before that is delivered.
func (f *Feed) Next(ctx context.Context) (r Record, ok bool) {
	for {
		if ctx.Err() != nil {
			return Record{}, false
		}
		r, ok, ended := f.take()
		if ok || ended {
			return r, ok
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
		}
	}
}

func (f *Feed) take() (r Record, ok, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == len(f.pending) {
		return Record{}, false, f.ended
	}
	r = f.pending[f.first]
	f.pending[f.first] = Record{} // its texts may go
	if f.first++; f.first == len(f.pending) {
		f.pending, f.first = f.pending[:0], 0
	}
	return r, true, false
}

// Stop ends the feed: nothing is kept for it any more. It is idempotent.
func (f *Feed) Stop() {
	f.store.mu.Lock()
	delete(f.store.feeds, f)
	f.store.mu.Unlock()
	f.mu.Lock()
	f.pending, f.first = nil, 0
	f.mu.Unlock()
	f.end()
}

// push adds a record. The store calls it, under its lock, so that feeds have one order.
func (f *Feed) push(r Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	if len(f.pending)-f.first == f.limit {
		f.pending[f.first] = Record{}
		f.first++
	}
	if f.first > f.limit {
		f.pending = append(f.pending[:0], f.pending[f.first:]...)
		f.first = 0
	}
	f.pending = append(f.pending, r)
	f.signal()
}

func (f *Feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.signal()
}

func (f *Feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}
