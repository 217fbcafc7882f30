package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// FuzzNames runs operations, two bytes each, against what a table promises: an address never changes its name while it is
// held or young, and an IPv6 address never does.
func FuzzNames(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		n, clock := smallNames(4, 6)
		m := namesModel{
			t: t, n: n, clock: clock,
			answers: map[string]*namesAnswer{}, owners: map[netip.Addr]*namesAnswer{},
		}
		for ; len(ops) >= 2; ops = ops[2:] {
			m.step(ops[0], ops[1])
		}
	})
}

// namesModel is what is known of a table from outside.
type namesModel struct {
	t       *testing.T
	n       *Names
	clock   *testClock
	answers map[string]*namesAnswer     // the last ones of each name
	owners  map[netip.Addr]*namesAnswer // the last ones with each address
	holds   []func()
}

// namesAnswer is what a name was answered with.
type namesAnswer struct {
	name   string
	v4, v6 netip.Addr
	used   time.Time // of the last answer or release
	holds  int
}

func (m *namesModel) step(op, arg byte) {
	name := fmt.Sprintf("n%d.test", arg%16)
	switch op % 4 {
	case 0:
		m.ask(name)
	case 1:
		m.clock.advance(time.Duration(arg) * time.Minute / 8)
	case 2:
		m.hold(name, op&4 == 0)
	case 3:
		if len(m.holds) > 0 {
			i := int(arg) % len(m.holds)
			m.holds[i]()
			m.holds = append(m.holds[:i], m.holds[i+1:]...)
		}
	}
	for _, a := range m.answers {
		if !m.keeps(a) {
			continue
		}
		for _, addr := range []netip.Addr{a.v4, a.v6} {
			if got, ok := m.n.Name(addr); !ok || got != a.name {
				m.t.Fatalf("%v must be kept for %q and stands for %q, %v", addr, a.name, got, ok)
			}
		}
	}
}

// hold holds one address of a name if it still stands for it.
func (m *namesModel) hold(name string, v4 bool) {
	a := m.answers[name]
	if a == nil {
		return
	}
	addr := a.v6
	if v4 {
		addr = a.v4
	}
	if got, _ := m.n.Name(addr); got != name {
		return
	}
	release := m.n.Hold(addr)
	a.holds++
	m.holds = append(m.holds, func() {
		release()
		a.holds--
		a.used = m.clock.now()
	})
}

// keeps reports whether an answer must still hold.
func (m *namesModel) keeps(a *namesAnswer) bool {
	return a != nil && (a.holds > 0 || m.clock.now().Sub(a.used) < nameTTL+nameGrace)
}

func (m *namesModel) ask(name string) {
	v4, v6, err := m.n.Addresses(name)
	last := m.answers[name]
	if err != nil {
		kept := 0
		for _, a := range m.answers {
			if m.keeps(a) {
				kept++
			}
		}
		if !errors.Is(err, ErrNamesFull) || m.keeps(last) || kept < m.n.capacity {
			m.t.Fatalf("%q: %v with %d names to keep", name, err, kept)
		}
		return
	}
	if last != nil && last.v4 == v4 && last.v6 == v6 {
		last.used = m.clock.now()
		return
	}
	if m.keeps(last) {
		m.t.Fatalf("%q got %v, %v although it must have kept %v, %v", name, v4, v6, last.v4, last.v6)
	}
	for _, addr := range []netip.Addr{v4, v6} {
		if owner := m.owners[addr]; owner != nil && (addr.Is6() || m.keeps(owner)) {
			m.t.Fatalf("%v was answered for %q and now is for %q", addr, owner.name, name)
		}
	}
	a := &namesAnswer{name: name, v4: v4, v6: v6, used: m.clock.now()}
	m.answers[name], m.owners[v4], m.owners[v6] = a, a, a
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
	n, clock := smallNames(maxNames, maxSlots)
	names := make([]string, 2*maxNames)
	for i := range names {
		names[i] = fmt.Sprintf("host%d.example.com", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%maxNames == 0 {
			clock.advance(nameTTL + nameGrace)
		}
		if _, _, err := n.Addresses(names[i%len(names)]); err != nil {
			b.Fatal(err)
		}
	}
}
