package credential

import (
	"bytes"
	"slices"
	"sort"
	"strings"
)

const (
	// headBytes is how many first bytes two sentinels share to be looked for together. Eight tell the fakes of tokens
	// (fake_value_) from those of JWTs with the usual header (eyJhbGci), and join what differs only in the key id.
	headBytes = 8
	// anchorBytes is how much of what a family shares is searched for. More would only find the same places.
	anchorBytes = 16
)

// scanner finds the sentinels of a list in bytes. It never changes and may be used by any number of goroutines.
type scanner struct {
	list     []*secret
	families []family
	longest  int // length of the longest sentinel
}

// family is sentinels that begin alike. One search for what they share is the whole cost of a body that holds none.
type family struct {
	anchor   string               // what all begin with, at most anchorBytes
	probe    []byte               // anchor[skip:], which is searched for: its first byte is the least frequent one
	skip     int                  // where in the anchor that is
	shortest int                  // length of the shortest sentinel
	byHead   map[string][]*secret // by the first shortest bytes; shorter sentinels first
	sorted   []string             // the sentinels in byte order
}

func newScanner(list []*secret) *scanner {
	sc := &scanner{list: list}
	byHead := map[string][]*secret{}
	for _, x := range list {
		if x.sentinel == "" {
			continue
		}
		head := x.sentinel[:min(headBytes, len(x.sentinel))]
		byHead[head] = append(byHead[head], x)
		sc.longest = max(sc.longest, len(x.sentinel))
	}
	for _, members := range byHead {
		sc.families = append(sc.families, newFamily(members))
	}
	return sc
}

func newFamily(members []*secret) family {
	slices.SortStableFunc(members, func(a, b *secret) int { return len(a.sentinel) - len(b.sentinel) })
	g := family{anchor: members[0].sentinel, shortest: len(members[0].sentinel), byHead: map[string][]*secret{}}
	g.anchor = g.anchor[:min(anchorBytes, len(g.anchor))]
	for _, x := range members {
		for !strings.HasPrefix(x.sentinel, g.anchor) {
			g.anchor = g.anchor[:len(g.anchor)-1]
		}
		head := x.sentinel[:g.shortest]
		g.byHead[head] = append(g.byHead[head], x)
		g.sorted = append(g.sorted, x.sentinel)
	}
	slices.Sort(g.sorted)
	g.skip = rarest(g.anchor)
	g.probe = []byte(g.anchor[g.skip:])
	return g
}

// rarest returns where in s the byte is from which a search is cheapest: the one that texts hold least.
func rarest(s string) int {
	const seldom = "JQZXVKYzqjxkvwWGUHBPFMby_"
	best, rank := 0, len(seldom)
	// Not in the last bytes: what is searched for must stay long enough to be found seldom.
	for i := range max(len(s)-4, 0) {
		if at := strings.IndexByte(seldom, s[i]); at >= 0 && at < rank {
			best, rank = i, at
		}
	}
	return best
}

// find returns the first place at or after from where a sentinel stands complete, and whose it is. None: nil.
func (sc *scanner) find(b []byte, from int) (pos int, found *secret) {
	for i := range sc.families {
		at, x := sc.families[i].find(b, from)
		if x != nil && (found == nil || at < pos || at == pos && shorter(x, found)) {
			pos, found = at, x
			// No later family can be of use beyond what overlaps this place.
			b = b[:min(len(b), at+sc.longest)]
		}
	}
	return pos, found
}

// shorter reports whether a has the shorter sentinel. Of two at the same place it is the one, see family.match.
func shorter(a, b *secret) bool { return b == nil || len(a.sentinel) < len(b.sentinel) }

// find is scanner.find for one family.
func (g *family) find(b []byte, from int) (pos int, found *secret) {
	for from+g.shortest <= len(b) {
		i := bytes.Index(b[from+g.skip:], g.probe)
		if i < 0 {
			break
		}
		from += i
		if x := g.match(b[from:]); x != nil {
			return from, x
		}
		from++
	}
	return 0, nil
}

// match returns whose sentinel b begins with. Of two where one begins with the other, which the making of sentinels rules
// out (CRED-5), it is the shorter: the answer then never depends on bytes that have not come yet.
func (g *family) match(b []byte) *secret {
	if len(b) < g.shortest {
		return nil
	}
	for _, x := range g.byHead[string(b[:g.shortest])] {
		if len(b) >= len(x.sentinel) && string(b[:len(x.sentinel)]) == x.sentinel {
			return x
		}
	}
	return nil
}

// tail returns the first place at or after from whose bytes to the end of b may be the beginning of a sentinel: what has
// to wait for the bytes that follow. len(b): none. It is at most longest-1 bytes from the end (CRED-25).
func (sc *scanner) tail(b []byte, from int) int {
	first := len(b)
	from = max(from, len(b)-sc.longest+1)
	for i := range sc.families {
		g := &sc.families[i]
		for p := from; p < first; p++ {
			next := bytes.IndexByte(b[p:first], g.anchor[0])
			if next < 0 {
				break
			}
			p += next
			if g.begins(b[p:]) {
				first = p
			}
		}
	}
	return first
}

// begins reports whether a sentinel longer than b begins with b.
func (g *family) begins(b []byte) bool {
	if n := min(len(b), len(g.anchor)); string(b[:n]) != g.anchor[:n] {
		return false
	}
	// Those that begin with b follow it in byte order.
	at := sort.Search(len(g.sorted), func(k int) bool { return g.sorted[k] > string(b) })
	return at < len(g.sorted) && len(g.sorted[at]) > len(b) && g.sorted[at][:len(b)] == string(b)
}

// holds reports whether s may hold a sentinel: a cheap first look at short texts.
func (sc *scanner) holds(s string) bool {
	for i := range sc.families {
		if strings.Contains(s, sc.families[i].anchor) {
			return true
		}
	}
	return false
}
