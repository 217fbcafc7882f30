package violation

import (
	"slices"
	"sync"
)

// maxChanges is by how many changes a subscriber may lag and still be called for each. Past that it is called once with
// what is held then.
const maxChanges = 1024

// change is one thing that happened to a store.
type change struct {
	record Record
	clear  bool
}

// subscription is one subscriber: a copy of the list as its function has seen it, and what has happened since. A goroutine
// of its own calls the function while there is something to say, so that a slow one holds up nobody; there is none while
// there is nothing to say.
type subscription struct {
	store  *Store
	call   func([]Record)
	failed func(recovered any)

	list ring // only touched by the goroutine that calls

	mu       sync.Mutex
	changes  []change
	behind   bool // changes were dropped: what the store holds stands for them
	calling  bool
	canceled bool
}

// Subscribe calls f with the records that are held, before it returns, and then with the whole list after each event that
// is kept and each Clear, in order and one at a time, until cancel is called or the store is closed (VIO-31). The later
// calls come from a goroutine of the subscriber's own, with no lock held: f may call every method of the store, and
// cancel. The list is f's to keep. A subscriber that lags by more than 1024 changes is not called for each of them.
//
// A panic in f is contained and given to failed, which may be nil. After cancel has returned no further call begins; one
// that has begun may still run.
func (s *Store) Subscribe(f func([]Record), failed func(recovered any)) (cancel func()) {
	sub := &subscription{store: s, call: f, failed: failed, calling: true}
	s.mu.Lock()
	sub.list = ring{records: slices.Clone(s.held.records), start: s.held.start}
	if !s.closed {
		s.subs = append(s.subs, sub)
	}
	s.mu.Unlock()
	sub.first()
	return func() {
		s.mu.Lock()
		s.subs = slices.DeleteFunc(s.subs, func(other *subscription) bool { return other == sub })
		s.mu.Unlock()
		sub.mu.Lock()
		sub.canceled, sub.changes, sub.behind = true, nil, false
		sub.mu.Unlock()
	}
}

// first is the call with what is held.
func (sub *subscription) first() {
	defer sub.rest()
	sub.say()
}

// tell passes a change on to every subscriber. The store's lock is held: that is what gives changes their order.
func (s *Store) tell(c change) {
	for _, sub := range s.subs {
		sub.note(c)
	}
}

func (sub *subscription) note(c change) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	switch {
	case sub.canceled || sub.behind:
		return
	case len(sub.changes) == maxChanges:
		sub.behind, sub.changes = true, nil
	default:
		sub.changes = append(sub.changes, c)
	}
	sub.start()
}

// start starts the goroutine if there is something to say and nobody says it. The subscription's lock is held.
func (sub *subscription) start() {
	if sub.calling || !sub.behind && len(sub.changes) == 0 {
		return
	}
	sub.calling = true
	go func() {
		defer sub.rest()
		for sub.next() {
			sub.say()
		}
	}()
}

// rest ends a goroutine's turn. Another one takes over if there is more to say: a function may end the goroutine it is
// called from (as testing.T.FailNow does), and a change may have come after the last look.
func (sub *subscription) rest() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	sub.calling = false
	sub.start()
}

// next brings the list to the state after one more change, and tells whether there was one.
func (sub *subscription) next() bool {
	sub.store.mu.Lock() // before the subscription's own, as where changes are noted
	defer sub.store.mu.Unlock()
	sub.mu.Lock()
	defer sub.mu.Unlock()
	switch {
	case sub.behind:
		held := &sub.store.held
		sub.list, sub.behind = ring{records: slices.Clone(held.records), start: held.start}, false
	case len(sub.changes) > 0:
		c := sub.changes[0]
		sub.changes[0] = change{} // its texts may go
		if sub.changes = sub.changes[1:]; c.clear {
			sub.list = ring{}
		} else {
			sub.list.add(c.record)
		}
	default:
		sub.changes = nil
		return false
	}
	return true
}

// say calls the function with the list as it is.
func (sub *subscription) say() {
	defer func() {
		if recovered := recover(); recovered != nil && sub.failed != nil {
			sub.failed(recovered)
		}
	}()
	sub.call(sub.list.all())
}
