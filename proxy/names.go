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
	// maxNames is how many names that the policy could allow a table holds at once. A name costs about 250 bytes and its own
	// length, some 20 MB for a full table of names of ordinary length and never more than 40 MB, and nothing before it is
	// asked for.
	maxNames = 1 << 16

	// maxSpare is how many names that the policy can not allow a table holds at once. They are kept only so that the
	// refusal of a connection can name them.
	maxSpare = 1 << 10

	// hostsPer24 leaves out the first and the last address of each /24, which some programs take for a network or a
	// broadcast address, and so 198.18.0.0 and 198.19.255.255.
	hostsPer24 = 254

	// mainSlots and spareSlots are the numbers of addresses that are given out, about two for each name that can be
	// allowed, and four for each of the others: 198.18.0.0 to 198.19.239.255, and 198.19.240.0/20.
	mainSlots  = 496 * hostsPer24
	spareSlots = 16 * hostsPer24

	// nameTTL is the time to live of every answer (RFC 1035 3.2.1). Long enough that the connections of one burst share
	// an answer, short enough that a program which honours it asks again and so keeps its binding young.
	nameTTL = 5 * time.Second
)

// synthetic4 is the range of IPv4 answers: set aside for benchmarks between two networks (RFC 2544, RFC 6890), so no
// service has an address in it.
var synthetic4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18}), 15)

var (
	// ErrNamesFull is a table of names in which every binding is held by a connection.
	ErrNamesFull = errors.New("connections hold as many different names as there are addresses for")

	// ErrNotName is a host that a table of names does not bind: a literal address, which stands for itself.
	ErrNotName = errors.New("an address is not a name")
)

// Names gives synthetic addresses to names, so that a connection that a program opens to an address can be judged by the
// name that the program asked for (NET-7, NET-50). Each name has one IPv4 address from 198.18.0.0/15 and one IPv6 address
// from a /64 in fd00::/8 that is drawn for each table (RFC 4193).
//
// An IPv6 address never stands for a second name. An IPv4 address may, because there are only 130,048 of them, but as late
// as possible: addresses that were never used go first, then the one that has been without a name longest. A name loses
// its addresses only when the table is full (65,536 names) and no connection holds them; which one goes is told at
// [namePool]. From then on its addresses stand for nothing, and a connection to them is refused rather than taken to
// another host.
//
// A program may ask for any number of names, and must not thereby keep others from theirs: names that the policy cannot
// allow have 1,024 places and addresses of their own, and take none from the rest.
//
// The zero value has no addresses and answers every name with [ErrNamesFull]. All methods may be called from any
// goroutine.
type Names struct {
	// Possible tells whether the policy of this moment could allow a canonical name on some port (see [Capture.Possible]).
	// It is asked for a name that has no addresses, and each time for one that could not be allowed before: once it can,
	// its next answer carries addresses of the large pool, and the earlier ones go on to stand for it while they stand for
	// anything (NET-16). Nil: every name can be. It must not be changed once the table is in use, and is called from
	// several goroutines with no lock held.
	Possible func(name string) bool

	prefix6 [8]byte

	mu          sync.Mutex
	byName      map[string]*binding // the binding that answers carry
	main, spare namePool
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
	return newNames(prefix, namePool{capacity: maxNames, limit: mainSlots}, namePool{capacity: maxSpare, limit: spareSlots}), nil
}

// reservedULA reports prefixes that are not drawn: anything but fd00::/8, and the two /16 in which cloud providers have
// their metadata services (NET-53).
func reservedULA(prefix [8]byte) bool {
	return prefix[0] != 0xfd || prefix[1] == 0x00 || prefix[1] == 0x20
}

func newNames(prefix [8]byte, main, spare namePool) *Names {
	n := &Names{prefix6: prefix, byName: map[string]*binding{}, main: main, spare: spare}
	n.spare.first = int32(main.limit) // #nosec G115 -- at most mainSlots
	n.main.init()
	n.spare.init()
	return n
}

// Addresses returns the two addresses of a name and binds them if it has none yet. The name is canonicalised (NET-8); what
// is no host matches [config.ErrMalformedHost] (NET-9), a literal matches [ErrNotName], a full table [ErrNamesFull].
func (n *Names) Addresses(name string) (v4, v6 netip.Addr, err error) {
	host, err := config.CanonicalHost(name)
	switch {
	case err != nil:
		return netip.Addr{}, netip.Addr{}, err
	case host.IsLiteral():
		return netip.Addr{}, netip.Addr{}, ErrNotName
	}
	if v4, v6, ok := n.known([]byte(host.Name)); ok {
		return v4, v6, nil
	}
	possible := n.Possible == nil || n.Possible(host.Name)
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.byName[host.Name]
	if b == nil || possible && b.pool == &n.spare {
		pool := &n.main
		if !possible {
			pool = &n.spare
		}
		if b, err = n.bind(pool, host.Name); err != nil {
			return netip.Addr{}, netip.Addr{}, err
		}
	}
	b.touch()
	return b.v4, b.v6, nil
}

// known is Addresses for a name that is bound already, among those that can be allowed, and spelled canonically; ok is
// false for every other text. It does not allocate, and it need not check the text: a malformed one was never bound.
func (n *Names) known(name []byte) (v4, v6 netip.Addr, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.byName[string(name)]
	if b == nil || b.pool == &n.spare {
		return netip.Addr{}, netip.Addr{}, false
	}
	b.touch()
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
	b.connected = true
	var once sync.Once
	return func() { once.Do(func() { n.release(b) }) }
}

// release ends one hold. Its end counts as use: the program that had the connection still knows the address.
func (n *Names) release(b *binding) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b.holds--; b.holds == 0 {
		b.touch()
	}
}

// bind gives a name a slot of a pool.
func (n *Names) bind(pool *namePool, name string) (*binding, error) {
	if pool.size >= pool.capacity && !n.drop(pool) {
		return nil, ErrNamesFull
	}
	i := pool.take()
	if i < 0 {
		if !n.drop(pool) {
			return nil, ErrNamesFull
		}
		if i = pool.take(); i < 0 {
			return nil, ErrNamesFull // the slot that was freed has no generation left
		}
	}
	s := &pool.slots[i]
	slot := pool.first + i
	s.binding = &binding{name: name, pool: pool, slot: i, v4: address4(slot), v6: n.address6(slot, s.generation)}
	pool.size++
	n.byName[name] = s.binding
	return s.binding, nil
}

// drop takes the addresses from the name of a pool that is missed least, and reports false if connections hold all.
func (n *Names) drop(pool *namePool) bool {
	b := pool.least()
	if b == nil {
		return false
	}
	if n.byName[b.name] == b {
		delete(n.byName, b.name)
	}
	pool.free(b)
	return true
}

// find returns the binding of an address, nil if there is none.
func (n *Names) find(a netip.Addr) *binding {
	a = a.Unmap()
	if !a.IsValid() || !n.Synthetic(a) {
		return nil
	}
	pool, i := &n.main, n.slotOf(a)
	if i >= int64(n.spare.first) {
		pool, i = &n.spare, i-int64(n.spare.first)
	}
	if i < 0 || i >= int64(len(pool.slots)) {
		return nil
	}
	b := pool.slots[i].binding
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
	// #nosec G115 -- each fits its byte for every slot of the two pools
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
