package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// wantGone checks which of the addresses of grow stand for nothing any more.
func wantGone(t *testing.T, n *Names, v4 []netip.Addr, gone ...int) {
	t.Helper()
	for i, a := range v4 {
		name, ok := n.Name(a)
		if want := !slices.Contains(gone, i); ok != want || ok && name != fmt.Sprintf("n%d.test", i) {
			t.Errorf("address %d stands for %q, %v", i, name, ok)
		}
	}
}

func TestNamesKeepWhatIsHeld(t *testing.T) {
	n := smallNames(3, 9)
	v4 := grow(t, n, 3)
	full := func(when string) {
		t.Helper()
		if _, _, err := n.Addresses("new.test"); !errors.Is(err, ErrNamesFull) {
			t.Fatalf("%s: %v", when, err)
		}
	}
	release := [3]func(){n.Hold(v4[0]), n.Hold(v4[1]), n.Hold(v4[2])}
	second := n.Hold(v4[0])
	full("all held")
	release[0]()
	release[0]() // a second call must not end the other hold
	full("one still held twice")
	second()
	wantAddresses(t, n, "new.test")
	wantGone(t, n, v4, 0)
	release[1]()
	release[2]()
}

// TestNamesDropWhatIsMissedLeast: names that nobody connected to go before the others, of each kind the one that was used
// least recently, unless a quarter of the table is all that they have.
func TestNamesDropWhatIsMissedLeast(t *testing.T) {
	n := smallNames(8, 99)
	v4 := grow(t, n, 8)
	for _, connected := range []int{5, 0, 7} {
		n.Hold(v4[connected])()
	}
	wantAddresses(t, n, "n1.test")
	gone := []int{2, 3, 4, 6}
	for i := range gone {
		wantAddresses(t, n, fmt.Sprintf("asked%d.test", i))
		wantGone(t, n, v4, gone[:i+1]...)
	}
	// What is left of those that were never connected to are n1 and four that were asked for after it. Connections make
	// them fewer than a quarter.
	for i := range 3 {
		a, _ := wantAddresses(t, n, fmt.Sprintf("asked%d.test", i))
		n.Hold(a)()
	}
	wantAddresses(t, n, "n0.test") // an answer is a use
	wantAddresses(t, n, "more.test")
	wantGone(t, n, v4, 2, 3, 4, 5, 6)
	wantAddresses(t, n, "evenmore.test")
	wantGone(t, n, v4, 1, 2, 3, 4, 5, 6)
}

// TestNET7_NamesThatCannotBeAllowed: however many names a program asks for that no setting could allow, the others resolve
// and keep their addresses, and a refused connection is still refused by name as long as the name was asked for recently.
func TestNET7_NamesThatCannotBeAllowed(t *testing.T) {
	n, err := NewNames()
	if err != nil {
		t.Fatal(err)
	}
	n.Possible = func(name string) bool { return strings.HasSuffix(name, "allowed.test") }
	kept4, kept6 := wantAddresses(t, n, "allowed.test")
	for i := range 70000 {
		wantAddresses(t, n, fmt.Sprintf("n%d.a.test", i))
	}
	if v4, v6 := wantAddresses(t, n, "allowed.test"); v4 != kept4 || v6 != kept6 {
		t.Errorf("allowed.test had %v, %v and has %v, %v", kept4, kept6, v4, v6)
	}
	wantAddresses(t, n, "also.allowed.test")
	if len(n.byName) != maxSpare+2 || len(n.main.slots) != 2 || len(n.spare.slots) != spareSlots {
		t.Errorf("%d names, %d and %d slots", len(n.byName), len(n.main.slots), len(n.spare.slots))
	}
	// What can be allowed may be plenty as well, beneath a wildcard. A program that has just looked a name up finds it.
	for i := range 2 * maxNames {
		wantAddresses(t, n, fmt.Sprintf("n%d.allowed.test", i))
	}
	wantAddresses(t, n, "allowed.test")
}

// TestNET16_NamesOfAPolicyThatChanges: the answer after an update that could allow a name is from the large pool, and the
// one before stands for the name as well.
func TestNET16_NamesOfAPolicyThatChanges(t *testing.T) {
	n := smallNames(4, 4)
	possible := false
	n.Possible = func(string) bool { return possible }
	old4, old6 := wantAddresses(t, n, "a.test")
	if again, _ := wantAddresses(t, n, "a.test"); again != old4 || n.slotOf(old4) < 4 {
		t.Errorf("%v and then %v", old4, again)
	}
	possible = true
	new4, new6 := wantAddresses(t, n, "a.test")
	if n.slotOf(new4) != 0 || n.slotOf(new6) != 0 {
		t.Errorf("after the update: %v, %v", new4, new6)
	}
	for _, a := range []netip.Addr{old4, old6, new4, new6} {
		if name, _ := n.Name(a); name != "a.test" {
			t.Errorf("%v stands for %q", a, name)
		}
	}
	possible = false
	if v4, _ := wantAddresses(t, n, "a.test"); v4 != new4 {
		t.Errorf("after the next update: %v, want %v as before", v4, new4)
	}
	for i := range 4 {
		wantAddresses(t, n, fmt.Sprintf("other%d.test", i))
	}
	if name, ok := n.Name(old4); ok && name == "a.test" {
		t.Error("the first address still stands for it")
	}
	if v4, _ := wantAddresses(t, n, "a.test"); v4 != new4 {
		t.Errorf("the end of the first address has taken the second with it: %v", v4)
	}
}
