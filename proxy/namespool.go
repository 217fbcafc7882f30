package proxy

import "net/netip"

// namePool is a part of the addresses of a table of names, and the names that have them.
//
// When it is full, a name that no connection holds has to go. Of the names that nobody ever connected to, which is what a
// program makes many of that asks for names and means none of them, it is the one that was asked for least recently; but
// while those are less than a quarter, so that a name which was only just asked for stays until it is connected to, it is
// the one among the others that was used least recently. No number of questions therefore keeps a name from its addresses,
// and however many there are, what programs are connected to, or were, goes last.
//
// Its lock is that of its table.
type namePool struct {
	first    int32 // the number of its first slot among all of the table
	capacity int   // names at once
	limit    int   // slots at once

	slots []slot // by number from first on; grows as addresses are used for the first time
	size  int    // names

	// Bindings that nothing holds, by whether there ever was a connection.
	fresh, kept nameRing

	// Slots without a name, the one that has been so longest first: indexes of slots, linked by slot.next. -1 is none.
	freeFirst, freeLast int32
}

// slot is an IPv4 address and the generation of the IPv6 address that goes with it.
type slot struct {
	*binding          // nil while the address stands for nothing
	generation uint32 // how many names had the slot before
	next       int32  // the slot after this one in the queue of free ones
}

// binding is a name and its addresses.
type binding struct {
	name       string // canonical (NET-8)
	v4, v6     netip.Addr
	pool       *namePool
	slot       int32 // index in the pool
	holds      int32 // connections; while there are any the binding is in no ring
	connected  bool  // there was a hold
	ring       *nameRing
	prev, next *binding
}

func (p *namePool) init() {
	p.freeFirst, p.freeLast = -1, -1
	p.fresh.init()
	p.kept.init()
}

// take returns the index of a slot without a name: a new one, else the one that has been free longest, else -1.
func (p *namePool) take() int32 {
	if len(p.slots) < p.limit {
		p.slots = append(p.slots, slot{})
		return int32(len(p.slots) - 1) // #nosec G115 -- below mainSlots
	}
	i := p.freeFirst
	if i >= 0 {
		if p.freeFirst = p.slots[i].next; p.freeFirst < 0 {
			p.freeLast = -1
		}
	}
	return i
}

// least is the name to go, nil if every one is held.
func (p *namePool) least() *binding {
	if p.fresh.size > p.capacity/4 || p.kept.size == 0 {
		return p.fresh.first()
	}
	return p.kept.first()
}

// free takes the slot from a binding that is in a ring.
func (p *namePool) free(b *binding) {
	b.unlink()
	p.size--
	s := &p.slots[b.slot]
	s.binding, s.next = nil, -1
	// A slot whose generations are used up is retired, so that an IPv6 address never stands for a second name.
	if s.generation++; s.generation == 0 {
		return
	}
	if p.freeLast < 0 {
		p.freeFirst = b.slot
	} else {
		p.slots[p.freeLast].next = b.slot
	}
	p.freeLast = b.slot
}

// nameRing is bindings in the order of their last use: a ring whose element is end itself.
type nameRing struct {
	end  binding
	size int
}

func (r *nameRing) init() { r.end.prev, r.end.next = &r.end, &r.end }

// first returns the binding that was used least recently, nil if there is none.
func (r *nameRing) first() *binding {
	if r.size == 0 {
		return nil
	}
	return r.end.next
}

// touch notes a use, the last one so far.
func (b *binding) touch() {
	if b.holds > 0 {
		return // its release will be the last use
	}
	b.unlink()
	b.ring = &b.pool.fresh
	if b.connected {
		b.ring = &b.pool.kept
	}
	b.ring.size++
	end := &b.ring.end
	b.prev, b.next = end.prev, end
	end.prev.next, end.prev = b, b
}

// unlink takes a binding out of the ring that it is in, if it is in one.
func (b *binding) unlink() {
	if b.ring == nil {
		return
	}
	b.prev.next, b.next.prev = b.next, b.prev
	b.ring.size--
	b.ring, b.prev, b.next = nil, nil, nil
}
