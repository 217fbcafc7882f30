package proxy

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
)

const (
	// maxNames is how many names a table holds at once. A name costs about 200 bytes and its own length, some 15 MB for a
	// full table of names of ordinary length and never more than 40 MB, and nothing before it is asked for.
	maxNames = 1 << 16

	// hostsPer24 leaves out the first and the last address of each /24, which some programs take for a network or a
	// broadcast address, and so 198.18.0.0 and 198.19.255.255.
	hostsPer24 = 254

	// maxSlots is the number of addresses in 198.18.0.0/15 that are given out: about two for each name.
	maxSlots = 512 * hostsPer24

	// nameTTL is the time to live of every answer (RFC 1035 3.2.1). Long enough that the connections of one burst share
	// an answer, short enough that a program which honours it asks again and so keeps its binding young.
	nameTTL = 5 * time.Second

	// nameGrace is how long past its TTL a binding is kept for programs that keep answers longer than they may: a JVM
	// with a security manager keeps them for ever, browsers and connection pools for a minute.
	nameGrace = 10 * time.Minute
)

// synthetic4 is the range of IPv4 answers: set aside for benchmarks between two networks (RFC 2544, RFC 6890), so no
// service has an address in it.
var synthetic4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18}), 15)

var (
	// ErrNamesFull is a table of names in which every binding was answered recently or is held by a connection.
	ErrNamesFull = errors.New("too many different names at once")

	// ErrNotName is a host that a table of names does not bind: a literal address, which stands for itself.
	ErrNotName = errors.New("an address is not a name")
)

// Names gives synthetic addresses to names, so that a connection that a program opens to an address can be judged by the
// name that the program asked for (NET-7, NET-50). Each name has one IPv4 address from 198.18.0.0/15 and one IPv6 address
// from a /64 in fd00::/8 that is drawn for each table (RFC 4193).
//
// An IPv6 address never stands for a second name. An IPv4 address may, because there are only 130,048 of them, but as late
// as possible: addresses that were never used go first, then the one that has been without a name longest. A name loses
// its addresses only when the table is full (65,536 names), no connection holds them, and neither an answer nor the end of
// a connection was seen for ten minutes; the name that was used least recently goes first. From then on its addresses
// stand for nothing, and a connection to them is refused rather than taken to another host.
//
// The zero value has no addresses and answers every name with [ErrNamesFull]. All methods may be called from any
// goroutine.
type Names struct {
	prefix6  [8]byte
	capacity int // names at once
	limit    int // slots at once
	now      func() time.Time

	mu     sync.Mutex
	byName map[string]*binding
	slots  []slot // by number of the IPv4 address; grows as addresses are used for the first time

	// Bindings that nothing holds, the least recently used first: a ring whose element is idle itself.
	idle binding

	// Slots without a name, the one that has been so longest first: numbers in slots, linked by slot.next. -1 is none.
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
	slot       int32
	holds      int32     // connections; while there are any the binding is not in the ring
	used       time.Time // of the last answer or the end of the last connection, whichever is later
	prev, next *binding
}

// NewNames makes an empty table with an IPv6 range of its own. It takes no memory to speak of until it is asked. The error
// is that of the system's random source.
func NewNames() (*Names, error) {
	var prefix [8]byte
	for reservedULA(prefix) {
		if _, err := rand.Read(prefix[1:]); err != nil {
			return nil, fmt.Errorf("draw the sandbox's range of IPv6 addresses: %w; see whether getrandom(2) works here", err)
		}
		prefix[0] = 0xfd
	}
	return newNames(prefix, maxNames, maxSlots, time.Now), nil
}

// reservedULA reports prefixes that are not drawn: anything but fd00::/8, and the two /16 in which cloud providers have
// their metadata services (NET-53).
func reservedULA(prefix [8]byte) bool {
	return prefix[0] != 0xfd || prefix[1] == 0x00 || prefix[1] == 0x20
}

func newNames(prefix [8]byte, capacity, limit int, now func() time.Time) *Names {
	n := &Names{
		prefix6: prefix, capacity: capacity, limit: limit, now: now,
		byName: map[string]*binding{}, freeFirst: -1, freeLast: -1,
	}
	n.idle.prev, n.idle.next = &n.idle, &n.idle
	return n
}

// Addresses returns the two addresses of a name and binds them if it has none yet. The answer stays the same for at least
// ten minutes, and as long as a connection holds one of the two. The name is canonicalised (NET-8); what is no host matches
// [config.ErrMalformedHost] (NET-9), a literal matches [ErrNotName], a full table [ErrNamesFull].
func (n *Names) Addresses(name string) (v4, v6 netip.Addr, err error) {
	host, err := config.CanonicalHost(name)
	switch {
	case err != nil:
		return netip.Addr{}, netip.Addr{}, err
	case host.IsLiteral():
		return netip.Addr{}, netip.Addr{}, ErrNotName
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.byName[host.Name]
	if b == nil {
		if b, err = n.bind(host.Name); err != nil {
			return netip.Addr{}, netip.Addr{}, err
		}
	}
	n.touch(b)
	return b.v4, b.v6, nil
}

// known is Addresses for a name that is bound already, spelled canonically; ok is false for every other text. It does not
// allocate, and it need not check the text: a malformed one was never bound.
func (n *Names) known(name []byte) (v4, v6 netip.Addr, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.byName[string(name)]
	if b == nil {
		return netip.Addr{}, netip.Addr{}, false
	}
	n.touch(b)
	return b.v4, b.v6, true
}

// Name returns the name that an address stands for; an IPv4-mapped address is the IPv4 address. ok is false for an address
// that no answer carried or whose name was dropped since: nothing may be connected for it. To connect, call Hold first and
// Name after it: the name cannot change while the hold lasts.
func (n *Names) Name(a netip.Addr) (name string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.find(a); b != nil {
		return b.name, true
	}
	return "", false
}

// Synthetic reports whether an address lies in the ranges of this table, whether or not it stands for a name. One that does
// not is refused, never dialled.
func (n *Names) Synthetic(a netip.Addr) bool {
	a = a.Unmap()
	if a.Is4() {
		return synthetic4.Contains(a)
	}
	b := a.As16()
	return n.prefix6[0] != 0 && [8]byte(b[:8]) == n.prefix6
}

// Hold keeps the binding of an address until release is called: for as long as a connection to it is being made or is open.
// Release may be called from any goroutine; further calls do nothing. An address that stands for no name has nothing to
// hold.
func (n *Names) Hold(a netip.Addr) (release func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.find(a)
	if b == nil {
		return func() {}
	}
	if b.holds++; b.holds == 1 {
		b.unlink()
	}
	var once sync.Once
	return func() { once.Do(func() { n.release(b) }) }
}

// release ends one hold. Its end counts as use: the program that had the connection still knows the address.
func (n *Names) release(b *binding) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b.holds--; b.holds == 0 {
		b.used = n.now()
		b.link(&n.idle)
	}
}

// touch notes an answer.
func (n *Names) touch(b *binding) {
	if b.holds > 0 {
		return // its release will be the last use
	}
	b.used = n.now()
	b.unlink()
	b.link(&n.idle)
}

// bind gives a name a slot.
func (n *Names) bind(name string) (*binding, error) {
	if len(n.byName) >= n.capacity && !n.drop() {
		return nil, ErrNamesFull
	}
	i := n.take()
	if i < 0 {
		if !n.drop() {
			return nil, ErrNamesFull
		}
		i = n.take()
	}
	s := &n.slots[i]
	b := &binding{name: name, slot: i, v4: address4(i), v6: n.address6(i, s.generation)}
	b.prev, b.next = b, b
	s.binding = b
	n.byName[name] = b
	return b, nil
}

// take returns the number of a slot without a name: a new one, else the one that has been free longest, else -1.
func (n *Names) take() int32 {
	if len(n.slots) < n.limit {
		n.slots = append(n.slots, slot{})
		return int32(len(n.slots) - 1) // #nosec G115 -- below maxSlots
	}
	i := n.freeFirst
	if i >= 0 {
		if n.freeFirst = n.slots[i].next; n.freeFirst < 0 {
			n.freeLast = -1
		}
	}
	return i
}

// drop takes the addresses from the name that was used least recently and reports false if that was too recently.
func (n *Names) drop() bool {
	b := n.idle.next
	if b == nil || b == &n.idle || n.now().Sub(b.used) < nameTTL+nameGrace {
		return false
	}
	b.unlink()
	delete(n.byName, b.name)
	s := &n.slots[b.slot]
	s.binding, s.next = nil, -1
	// A slot whose generations are used up is retired, so that an IPv6 address never stands for a second name.
	if s.generation++; s.generation != 0 {
		if n.freeLast < 0 {
			n.freeFirst = b.slot
		} else {
			n.slots[n.freeLast].next = b.slot
		}
		n.freeLast = b.slot
	}
	return true
}

// find returns the binding of an address, nil if there is none.
func (n *Names) find(a netip.Addr) *binding {
	a = a.Unmap()
	if !a.IsValid() || !n.Synthetic(a) {
		return nil
	}
	i := n.slotOf(a)
	if i < 0 || i >= int64(len(n.slots)) {
		return nil
	}
	b := n.slots[i].binding
	if b == nil || a.Is4() && b.v4 != a || a.Is6() && b.v6 != a.WithZone("") {
		return nil
	}
	return b
}

// slotOf is the inverse of address4 and address6, for any address of the ranges: its number may lie beyond the slots, and
// the slot may have another address.
func (n *Names) slotOf(a netip.Addr) int64 {
	if a.Is4() {
		b := a.As4()
		return (int64(b[1]&1)<<8|int64(b[2]))*hostsPer24 + int64(b[3]) - 1
	}
	b := a.As16()
	return int64(binary.BigEndian.Uint32(b[12:])) - 1
}

// address4 is the IPv4 address of a slot.
func address4(i int32) netip.Addr {
	block := i / hostsPer24
	// #nosec G115 -- each fits its byte for every slot below maxSlots
	return netip.AddrFrom4([4]byte{198, 18 + byte(block>>8), byte(block), byte(i%hostsPer24) + 1})
}

// address6 is the IPv6 address of a slot: prefix, generation, number. The interface identifier is never zero, which would
// be the subnet-router anycast address (RFC 4291 2.6.1).
func (n *Names) address6(i int32, generation uint32) netip.Addr {
	var b [16]byte
	copy(b[:], n.prefix6[:])
	binary.BigEndian.PutUint32(b[8:], generation)
	binary.BigEndian.PutUint32(b[12:], uint32(i)+1) // #nosec G115 -- not negative
	return netip.AddrFrom16(b)
}

// unlink takes a binding out of the ring that it is in; out of one of its own it stays there.
func (b *binding) unlink() {
	b.prev.next, b.next.prev = b.next, b.prev
	b.prev, b.next = b, b
}

// link puts a binding at the end of the ring.
func (b *binding) link(ring *binding) {
	b.prev, b.next = ring.prev, ring
	ring.prev.next, ring.prev = b, b
}
