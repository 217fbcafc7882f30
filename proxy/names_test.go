package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// testPrefix6 is the IPv6 range of the tables of tests.
var testPrefix6 = [8]byte{0xfd, 1, 2, 3, 4, 5, 6, 7}

// smallNames is a table of few names and addresses, and even fewer for those that cannot be allowed.
func smallNames(capacity, limit int) *Names {
	return newNames(testPrefix6, namePool{capacity: capacity, limit: limit}, namePool{capacity: 2, limit: 3})
}

// wantAddresses asks for a name that must have addresses, and checks that they stand for it.
func wantAddresses(t testing.TB, n *Names, name string) (v4, v6 netip.Addr) {
	t.Helper()
	v4, v6, err := n.Addresses(name)
	if err != nil {
		t.Fatalf("Addresses(%q): %v", name, err)
	}
	for _, a := range []netip.Addr{v4, v6} {
		if got, ok := n.Name(a); !ok || got != name || !n.Synthetic(a) {
			t.Fatalf("%v of %q stands for %q, %v", a, name, got, ok)
		}
	}
	return v4, v6
}

func TestNET8_NamesAreCanonical(t *testing.T) {
	n := smallNames(10, 10)
	v4, v6 := wantAddresses(t, n, "a.example.com")
	if v4 != netip.MustParseAddr("198.18.0.1") || v6 != netip.MustParseAddr("fd01:203:405:607::1") {
		t.Errorf("first addresses: %v, %v", v4, v6)
	}
	for _, spelling := range []string{"a.example.com", "A.Example.COM", "a.example.com."} {
		if a4, a6, err := n.Addresses(spelling); err != nil || a4 != v4 || a6 != v6 {
			t.Errorf("%q: %v, %v, %v", spelling, a4, a6, err)
		}
	}
	if b4, b6 := wantAddresses(t, n, "b"); b4 == v4 || b6 == v6 {
		t.Errorf("a second name has %v, %v as well", b4, b6)
	}
}

func TestNET9_NamesRefuseMalformed(t *testing.T) {
	n := smallNames(10, 10)
	for name, want := range map[string]error{
		"": config.ErrMalformedHost, ".": config.ErrMalformedHost, "a..b": config.ErrMalformedHost,
		"a b": config.ErrMalformedHost, "a%lo": config.ErrMalformedHost, "ä.test": config.ErrMalformedHost,
		"a\x00b": config.ErrMalformedHost, "*.test": config.ErrMalformedHost, "1.2.3.4.5": config.ErrMalformedHost,
		strings.Repeat("a", 256): config.ErrMalformedHost,
		"127.0.0.1":              ErrNotName, "0x7f.1": ErrNotName, "::1": ErrNotName, "[::1]": ErrNotName,
	} {
		if v4, v6, err := n.Addresses(name); !errors.Is(err, want) || v4.IsValid() || v6.IsValid() {
			t.Errorf("%q: %v, %v, %v; want %v", name, v4, v6, err, want)
		}
	}
	if len(n.byName) != 0 || len(n.main.slots) != 0 {
		t.Errorf("%d names and %d slots were kept", len(n.byName), len(n.main.slots))
	}
}

func TestNamesZeroValueHasNone(t *testing.T) {
	var n Names
	if _, _, err := n.Addresses("a.test"); !errors.Is(err, ErrNamesFull) {
		t.Errorf("Addresses: %v", err)
	}
	for _, s := range []string{"198.18.0.1", "::", "::1", "fd00::1"} {
		a := netip.MustParseAddr(s)
		if name, ok := n.Name(a); ok {
			t.Errorf("%v stands for %q", a, name)
		}
		if n.Synthetic(a) != a.Is4() {
			t.Errorf("Synthetic(%v) = %v", a, n.Synthetic(a))
		}
		n.Hold(a)()
	}
}

func TestNewNamesDrawsARange(t *testing.T) {
	seen := map[[8]byte]bool{}
	for range 200 {
		n, err := NewNames()
		if err != nil {
			t.Fatal(err)
		}
		if reservedULA(n.prefix6) || seen[n.prefix6] {
			t.Errorf("prefix %x", n.prefix6)
		}
		seen[n.prefix6] = true
	}
	for _, metadata := range []string{"fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"} {
		b := netip.MustParseAddr(metadata).As16()
		if !reservedULA([8]byte(b[:8])) {
			t.Errorf("NET-53: the range of %s may be drawn", metadata)
		}
	}
}

func TestSyntheticAddressesAreDistinct(t *testing.T) {
	const allSlots = mainSlots + spareSlots
	if first, last := address4(mainSlots), address4(allSlots-1); first.String() != "198.19.240.1" || last.String() != "198.19.255.254" {
		t.Errorf("the addresses of names that cannot be allowed are %v to %v", first, last)
	}
	n := smallNames(1, 1)
	seen := make(map[netip.Addr]bool, allSlots)
	for i := range int32(allSlots) {
		v4, v6 := address4(i), n.address6(i, uint32(i)*7)
		last := v4.As4()[3]
		if seen[v4] || !synthetic4.Contains(v4) || last == 0 || last == 255 || !n.Synthetic(v6) {
			t.Fatalf("slot %d has %v, %v", i, v4, v6)
		}
		if n.slotOf(v4) != int64(i) || n.slotOf(v6) != int64(i) {
			t.Fatalf("slot %d: %v is of %d, %v of %d", i, v4, n.slotOf(v4), v6, n.slotOf(v6))
		}
		seen[v4] = true
	}
}

func TestSyntheticRanges(t *testing.T) {
	n := smallNames(10, 10)
	v4, v6 := wantAddresses(t, n, "a.test")
	for s, want := range map[string]struct {
		synthetic bool
		name      string
	}{
		v4.String():                            {true, "a.test"},
		v6.String():                            {true, "a.test"},
		"::ffff:" + v4.String():                {true, "a.test"},
		v6.String() + "%lo":                    {true, "a.test"},
		"198.18.0.0":                           {true, ""},
		"198.18.0.2":                           {true, ""},
		"198.18.1.0":                           {true, ""},
		"198.19.255.255":                       {true, ""},
		"198.17.255.255":                       {false, ""},
		"198.20.0.0":                           {false, ""},
		"fd01:203:405:607::":                   {true, ""},
		"fd01:203:405:607:0:1:0:1":             {true, ""},
		"fd01:203:405:607:ffff:ffff:ffff:ffff": {true, ""},
		"fd01:203:405:608::1":                  {false, ""},
		"127.0.0.1":                            {false, ""},
		"::1":                                  {false, ""},
		"::":                                   {false, ""},
	} {
		a := netip.MustParseAddr(s)
		name, ok := n.Name(a)
		if n.Synthetic(a) != want.synthetic || name != want.name || ok != (want.name != "") {
			t.Errorf("%v: synthetic %v, name %q, %v", a, n.Synthetic(a), name, ok)
		}
	}
	if name, ok := n.Name(netip.Addr{}); ok || n.Synthetic(netip.Addr{}) {
		t.Errorf("no address stands for %q", name)
	}
}

// grow asks for names 0 to count-1 and returns their IPv4 addresses.
func grow(t *testing.T, n *Names, count int) []netip.Addr {
	t.Helper()
	var v4 []netip.Addr
	for i := range count {
		a, _ := wantAddresses(t, n, fmt.Sprintf("n%d.test", i))
		v4 = append(v4, a)
	}
	return v4
}

func TestNamesReuseAddressesLast(t *testing.T) {
	n := smallNames(2, 4)
	used := map[netip.Addr]bool{}
	var order []netip.Addr
	for i := range 12 {
		v4, v6 := wantAddresses(t, n, fmt.Sprintf("n%d.test", i))
		if used[v6] {
			t.Errorf("name %d: %v stood for another name", i, v6)
		}
		if i < 4 && used[v4] {
			t.Errorf("name %d: %v is used again before all were used", i, v4)
		}
		if i >= 4 && v4 != order[i-4] {
			t.Errorf("name %d has %v, and %v was free longest", i, v4, order[i-4])
		}
		used[v4], used[v6] = true, true
		order = append(order, v4)
	}
	if len(n.main.slots) != 4 || len(n.byName) != 2 {
		t.Errorf("%d slots, %d names", len(n.main.slots), len(n.byName))
	}
}

func TestNamesWithFewerAddressesThanNames(t *testing.T) {
	n := smallNames(5, 2)
	v4 := grow(t, n, 2)
	release := []func(){n.Hold(v4[0]), n.Hold(v4[1])}
	if _, _, err := n.Addresses("c.test"); !errors.Is(err, ErrNamesFull) {
		t.Errorf("no address is left: %v", err)
	}
	release[0]()
	release[1]()
	if a, _ := wantAddresses(t, n, "c.test"); a != v4[0] {
		t.Errorf("c.test has %v, want that of the name used least recently, %v", a, v4[0])
	}
	if _, ok := n.Name(v4[1]); !ok {
		t.Error("more names were dropped than needed")
	}
}

func TestNamesRetireASlotWithoutGenerations(t *testing.T) {
	n := smallNames(1, 1)
	wantAddresses(t, n, "a.test")
	n.main.slots[0].generation = 1<<32 - 1
	for range 2 {
		if _, _, err := n.Addresses("b.test"); !errors.Is(err, ErrNamesFull) {
			t.Errorf("b.test: %v", err)
		}
	}
	if _, ok := n.Name(address4(0)); ok || len(n.byName) != 0 {
		t.Error("a.test is still bound")
	}
}

func TestNamesStayBounded(t *testing.T) {
	longest := strings.Repeat("a", 61)
	longest = strings.Join([]string{"n%060d", longest, longest, longest}, ".")
	for _, format := range []string{"host%d.example.com", longest} {
		n, err := NewNames()
		if err != nil {
			t.Fatal(err)
		}
		before := heap()
		for i := range 2 * maxNames {
			if _, _, err := n.Addresses(fmt.Sprintf(format, i)); err != nil {
				t.Fatal(err)
			}
		}
		size := heap() - before
		t.Logf("%d names of up to %d bytes: %d bytes, %d each", maxNames, len(fmt.Sprintf(format, maxNames)), size, size/maxNames)
		if len(n.byName) != maxNames || size > 40<<20 {
			t.Errorf("%d names, %d bytes", len(n.byName), size)
		}
		runtime.KeepAlive(n)
	}
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestNamesConcurrently(t *testing.T) {
	// Either pool has more names than the goroutines can hold at once.
	n := newNames(testPrefix6, namePool{capacity: 40, limit: 60}, namePool{capacity: 10, limit: 14})
	n.Possible = func(name string) bool { return name < "n8" }
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				name := fmt.Sprintf("n%d.test", (i*7+g*13)%97)
				v4, v6, err := n.Addresses(name)
				if err != nil {
					t.Error(err) // fewer holds than names at any time
					continue
				}
				release := n.Hold(v6)
				// Other goroutines ask for other names, so the name may have gone before it was held, but never to another name.
				if got, ok := n.Name(v6); ok && got != name {
					t.Errorf("%v of %q stands for %q", v6, name, got)
				}
				n.known([]byte(name))
				n.Synthetic(v4)
				release()
			}
		})
	}
	wg.Wait()
	for _, p := range []*namePool{&n.main, &n.spare} {
		if idle := p.fresh.size + p.kept.size; idle != p.size || p.size != p.capacity {
			t.Errorf("%d names, %d of them not held although every hold was released, of %d", p.size, idle, p.capacity)
		}
	}
	if len(n.byName) != n.main.size+n.spare.size {
		t.Errorf("%d names", len(n.byName))
	}
}
