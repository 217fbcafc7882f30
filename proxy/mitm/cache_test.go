package mitm

import (
	"crypto/tls"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLeafCache is case 6: of 10 000 names the 256 used last are kept, and all have one key (TLS-27).
func TestLeafCache(t *testing.T) {
	ca := newTestCA(t)
	get := func(name string) *tls.Certificate {
		t.Helper()
		leaf, err := ca.Leaf(name)
		if err != nil {
			t.Fatal(err)
		}
		return leaf
	}
	name := func(i int) string { return "h" + strconv.Itoa(i) + ".example" }
	first := get(name(0))
	for i := range leavesKept - 1 {
		if get(name(i+1)).PrivateKey != first.PrivateKey {
			t.Fatal("TLS-27: leaves have different keys")
		}
	}
	if get(name(0)) != first { // it is now the most recently used one
		t.Error("TLS-27: a name among the last 256 was issued again")
	}
	second := get(name(1)) // and so is this one; the next that goes is 2
	third := get(name(2))
	for i := range leavesKept - 3 {
		get("x" + name(i))
	}
	if get(name(0)) != first || get(name(1)) != second || get(name(2)) != third {
		t.Error("TLS-27: a name used recently was dropped")
	}
	for i := range leavesKept {
		get("y" + name(i))
	}
	if get(name(0)) == first {
		t.Error("TLS-27: more than 256 names are kept")
	}
	for i := range 10_000 {
		ca.cached("z"+name(i), time.Now())
	}
	if len(ca.leaves) != leavesKept || ca.recent.Len() != leavesKept {
		t.Errorf("TLS-27: %d and %d names are kept", len(ca.leaves), ca.recent.Len())
	}
}

// TestLeafIssuedOnce holds that many tunnels to a new host get one certificate, issued once (TLS-27).
func TestLeafIssuedOnce(t *testing.T) {
	ca := newTestCA(t)
	var wg sync.WaitGroup
	got := make([]*tls.Certificate, 300)
	for i := range got {
		wg.Go(func() { got[i], _ = ca.Leaf("new.example") })
	}
	wg.Wait()
	for _, leaf := range got {
		if leaf == nil || leaf != got[0] {
			t.Fatal("TLS-27: a name was issued more than once")
		}
	}
}

// TestLeafRenewed holds that a session that outlives a leaf gets another, and one that outlives its authority an error.
func TestLeafRenewed(t *testing.T) {
	ca := newTestCA(t)
	leaf, err := ca.Leaf("a.example")
	if err != nil {
		t.Fatal(err)
	}
	entry := ca.cached("a.example", time.Now())
	if ca.cached("a.example", leaf.Leaf.NotAfter.Add(-day-time.Hour)) != entry {
		t.Error("TLS-27: a certificate that is good for more than a day was dropped")
	}
	if ca.cached("a.example", leaf.Leaf.NotAfter.Add(-time.Hour)) == entry {
		t.Error("TLS-26: a certificate is handed out to its last hour")
	}
	late := ca.cached("b.example", time.Now().Add(200*day))
	if ca.cached("b.example", time.Now()) == late {
		t.Error("TLS-26: a certificate of a clock that was ahead is handed out before it begins")
	}
	if err := ca.current(ca.certificate.NotAfter.Add(time.Second)); !errors.Is(err, ErrCA) || !strings.Contains(err.Error(), "certificate has expired") {
		t.Errorf("TLS-7: %v", err)
	}
}

func TestLeafName(t *testing.T) {
	ca := newTestCA(t)
	for _, name := range []string{"", "A.example", "a b", "a\x00b", "*.example", "é.example", "[::1]", "fe80::1%eth0", "a/b", strings.Repeat("a", 256)} {
		if _, err := ca.Leaf(name); !errors.Is(err, ErrLeafName) {
			t.Errorf("TLS-26: Leaf(%q): %v", name, err)
		}
	}
}
