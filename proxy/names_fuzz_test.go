package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

// FuzzNames runs operations, two bytes each, against what a table promises: an address never changes its name while it is
// held or was used recently, an IPv6 address never does, and names that cannot be allowed take nothing from the others.
func FuzzNames(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		m := namesModel{
			t: t, n: smallNames(modelNames, modelSlots), possible: map[string]bool{},
			answers: map[string]*namesAnswer{}, owners: map[netip.Addr]*namesAnswer{},
		}
		m.n.Possible = func(name string) bool { return m.possible[name] }
		for i := range 12 {
			m.possible[fmt.Sprintf("n%d.test", i)] = true
		}
		for ; len(ops) >= 2; ops = ops[2:] {
			m.step(ops[0], ops[1])
		}
	})
}

// The sizes of the table for names that can be allowed.
const modelNames, modelSlots = 8, 10

// namesModel is what is known of a table from outside.
type namesModel struct {
	t        *testing.T
	n        *Names
	possible map[string]bool
	answers  map[string]*namesAnswer     // the last ones of each name
	owners   map[netip.Addr]*namesAnswer // the last ones with each address
	bound    []*namesAnswer              // those that still stood before the last step
	holds    []func()
	clock    int // counts uses
}

// namesAnswer is what a name was answered with.
type namesAnswer struct {
	name   string
	v4, v6 netip.Addr
	spare  bool // it could not be allowed then
	used   int  // clock of the last answer or release
	holds  int
}

func (m *namesModel) step(op, arg byte) {
	m.bound = slices.DeleteFunc(m.bound, func(a *namesAnswer) bool { return !m.stands(a) })
	name := fmt.Sprintf("n%d.test", arg%16)
	switch op % 4 {
	case 0:
		m.ask(name)
	case 1:
		m.possible[name] = op&4 == 0
	case 2:
		m.hold(name, op&4 == 0)
	case 3:
		if len(m.holds) > 0 {
			i := int(arg) % len(m.holds)
			m.holds[i]()
			m.holds = append(m.holds[:i], m.holds[i+1:]...)
		}
	}
	for _, a := range m.bound {
		if m.keeps(a) && !m.stands(a) {
			m.t.Fatalf("%v, %v of %q stand for it no more", a.v4, a.v6, a.name)
		}
	}
}

// stands reports whether the addresses of an answer stand for its name, both of them or none.
func (m *namesModel) stands(a *namesAnswer) bool {
	four, ok4 := m.n.Name(a.v4)
	six, ok6 := m.n.Name(a.v6)
	if ok6 && (six != a.name || !ok4 || four != a.name) {
		m.t.Fatalf("%v of %q stands for %q, %v; %v for %q", a.v4, a.name, four, ok4, a.v6, six)
	}
	return ok6
}

// hold holds one address of a name if it still stands for it.
func (m *namesModel) hold(name string, v4 bool) {
	a := m.answers[name]
	if a == nil || !m.stands(a) {
		return
	}
	addr := a.v6
	if v4 {
		addr = a.v4
	}
	release := m.n.Hold(addr)
	a.holds++
	m.holds = append(m.holds, func() {
		release()
		a.holds--
		m.use(a)
	})
}

// use notes a use.
func (m *namesModel) use(a *namesAnswer) {
	m.clock++
	a.used = m.clock
}

// held counts what connections hold of those that can be allowed, or of the others.
func (m *namesModel) held(spare bool) (count int) {
	for _, a := range m.bound {
		if a.spare == spare && a.holds > 0 {
			count++
		}
	}
	return count
}

// keeps reports whether an answer must hold: while a connection holds it, and, if it can be allowed, while fewer than a
// quarter of the names were used after it, unless connections hold nearly all of the rest.
func (m *namesModel) keeps(a *namesAnswer) bool {
	if a.holds > 0 || a.spare {
		return a.holds > 0
	}
	later := 0
	for _, other := range m.bound {
		if !other.spare && other.holds == 0 && other.used > a.used {
			later++
		}
	}
	return later < modelNames/4 && m.held(false) < modelNames/2
}

func (m *namesModel) ask(name string) {
	v4, v6, err := m.n.Addresses(name)
	last := m.answers[name]
	if last != nil && !slices.Contains(m.bound, last) {
		last = nil
	}
	possible := m.possible[name]
	moves := last != nil && last.spare && possible
	if err != nil {
		capacity := modelNames
		if !possible {
			capacity = m.n.spare.capacity
		}
		if !errors.Is(err, ErrNamesFull) || last != nil && !moves || m.held(!possible) < capacity {
			m.t.Fatalf("%q: %v with %d names held", name, err, m.held(!possible))
		}
		return
	}
	if last != nil && last.v4 == v4 && last.v6 == v6 && !moves {
		m.use(last)
		return
	}
	if last != nil && !moves {
		m.t.Fatalf("%q got %v, %v although it had %v, %v", name, v4, v6, last.v4, last.v6)
	}
	a := &namesAnswer{name: name, v4: v4, v6: v6, spare: m.n.slotOf(v4) >= modelSlots}
	if a.spare == possible {
		m.t.Fatalf("%q, possible %v, got %v", name, possible, v4)
	}
	for _, addr := range []netip.Addr{v4, v6} {
		if owner := m.owners[addr]; owner != nil && (addr.Is6() || owner.holds > 0 || m.keeps(owner) && slices.Contains(m.bound, owner)) {
			m.t.Fatalf("%v was answered for %q and now is for %q", addr, owner.name, name)
		}
	}
	m.use(a)
	m.answers[name], m.owners[v4], m.owners[v6] = a, a, a
	m.bound = append(m.bound, a)
}

func BenchmarkNamesKnown(b *testing.B) {
	n, err := NewNames()
	if err != nil {
		b.Fatal(err)
	}
	wantAddresses(b, n, "a.example.com")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := n.known([]byte("a.example.com")); !ok {
			b.Fatal("unknown")
		}
	}
}

func BenchmarkNamesHold(b *testing.B) {
	n, err := NewNames()
	if err != nil {
		b.Fatal(err)
	}
	v4, _ := wantAddresses(b, n, "a.example.com")
	b.ReportAllocs()
	for b.Loop() {
		release := n.Hold(v4)
		if _, ok := n.Name(v4); !ok {
			b.Fatal("unknown")
		}
		release()
	}
}

func BenchmarkNamesNew(b *testing.B) {
	n, err := NewNames()
	if err != nil {
		b.Fatal(err)
	}
	names := make([]string, 2*maxNames)
	for i := range names {
		names[i] = fmt.Sprintf("host%d.example.com", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, _, err := n.Addresses(names[i%len(names)]); err != nil {
			b.Fatal(err)
		}
	}
}
