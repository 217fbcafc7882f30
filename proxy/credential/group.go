package credential

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/srt-sandbox/srt/runtime/config"
)

// groupKey says what values are taken from, how, and where they may go. Launches that agree in it share sentinels
// (CRED-6).
type groupKey struct {
	source string // "env NAME", perhaps with a word for the value, or "file LOCATION"
	how    string // the pattern, the decoding and the claims
	hosts  string // see parseHosts
}

// group is what one source holds.
type group struct {
	current []*member // of the last launch, in the order of the text
	retired []*member // of earlier ones; commands that run may still have their sentinels
}

// member is one distinct value of a group, through its rotations.
type member struct {
	slot   *slot
	faces  []*secret            // all that ever stood for it; the last one is what a launch sees now
	claims map[claimKey]*member // of a JWT, each with one face
}

// claimKey names a claim of a JWT. A name may occur more than once (RFC 8259 section 4 leaves that open).
type claimKey struct {
	name    string
	ordinal int
}

// origin is what all secrets of a group have in common.
type origin struct {
	hosts []config.Domain
	name  string
	whole bool
}

// assign makes sentinels stand for the distinct values of one source, in the order of the text, and returns the secrets.
// A value that was there at the last launch keeps its sentinel. Where as many values are there as at the last launch,
// the others are taken for the same credentials, rotated, in the same order: they take over the sentinels, so that
// commands that run send the value of today (CRED-6). face makes what stands for the i-th value.
func (s *Store) assign(key groupKey, of origin, values [][]byte, face func(m *member, i int) (string, error)) ([]*secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if s.groups == nil {
		s.groups = make(map[groupKey]*group)
	}
	g := s.groups[key]
	if g == nil {
		g = &group{}
		s.groups[key] = g
	}
	out := make([]*secret, len(values))
	members := g.arrange(values)
	for i, value := range values {
		m := members[i]
		if err := s.put(m.slot, value); err != nil {
			return nil, err
		}
		text, err := face(m, i)
		if err != nil {
			return nil, err
		}
		out[i] = s.show(m, of, text)
	}
	s.byHost, s.lists = nil, nil
	return out, nil
}

// arrange finds or makes the member of every value and makes them the current ones.
func (g *group) arrange(values [][]byte) []*member {
	next := make([]*member, len(values))
	rest := g.match(values, next)
	if len(values) == len(g.current) {
		for i, m := range next {
			if m == nil {
				next[i], rest = rest[0], rest[1:]
			}
		}
	}
	g.retired = append(g.retired, rest...)
	for i, m := range next {
		if m == nil {
			next[i] = &member{slot: &slot{}}
		}
	}
	g.current = next
	return next
}

// match puts the members into next whose value is among values, takes them from the retired ones, and returns the
// current members that are left over.
func (g *group) match(values [][]byte, next []*member) (rest []*member) {
	if len(values) == 1 && len(g.current) == 1 {
		next[0] = g.current[0]
		return nil
	}
	seed := maphash.MakeSeed()
	index := make(map[uint64][]int, len(values))
	for i, v := range values {
		h := maphash.Bytes(seed, v)
		index[h] = append(index[h], i)
	}
	take := func(m *member) bool {
		for _, i := range index[maphash.Bytes(seed, m.slot.view)] {
			if next[i] == nil && bytes.Equal(values[i], m.slot.view) {
				next[i] = m
				return true
			}
		}
		return false
	}
	for _, m := range g.current {
		if !take(m) {
			rest = append(rest, m)
		}
	}
	g.retired = slices.DeleteFunc(g.retired, take)
	return rest
}

// put gives a slot its value. Space is kept between values, and what is left is overwritten.
func (s *Store) put(to *slot, value []byte) error {
	if to.view != nil {
		if bytes.Equal(to.view, value) {
			return nil
		}
		if len(value) <= cap(to.view) {
			whole := to.view[:cap(to.view)]
			wipe(whole[copy(whole, value):])
			to.view = whole[:len(value)]
			return nil
		}
	}
	spot, err := s.region.place(value)
	if err != nil {
		return err
	}
	if to.view != nil {
		s.region.release(to.view)
	}
	to.view = spot
	return nil
}

// show makes text stand for a member from now on. What stood for it before stays valid.
func (s *Store) show(m *member, of origin, text string) *secret {
	for i, x := range m.faces {
		if x.sentinel == text {
			m.faces = append(slices.Delete(m.faces, i, i+1), x)
			return x
		}
	}
	x := &secret{store: s, slot: m.slot, sentinel: text, hosts: of.hosts, name: of.name, whole: of.whole}
	m.faces = append(m.faces, x)
	s.secrets = append(s.secrets, x)
	return x
}

// plainFace keeps the sentinel of a member, or draws one of the length of its value.
func (s *Store) plainFace(m *member, _ int) (string, error) {
	if len(m.faces) > 0 {
		return m.faces[0].sentinel, nil
	}
	return s.sentinels.draw(len(m.slot.view)), nil
}

// tokenFace is plainFace for JWTs of which nothing is shown.
func (s *Store) tokenFace(m *member, _ int) (string, error) {
	if len(m.faces) > 0 {
		return m.faces[0].sentinel, nil
	}
	return s.sentinels.drawToken(), nil
}
