package proxy

import (
	"fmt"
	"testing"
)

func TestVIO15_WhoIsToldOfTheLimit(t *testing.T) {
	var s tunnelSlots
	take := func(limit int, command string, wantOK, wantFirst bool) {
		t.Helper()
		if ok, first := s.take(limit, command); ok != wantOK || first != wantFirst {
			t.Errorf("%d taken of %d: %v, %v", s.taken, limit, ok, first)
		}
	}
	for range 4 {
		take(4, "a", true, false)
	}
	take(4, "a", false, true)
	take(4, "a", false, false)
	take(4, "b", false, true)
	s.give(4) // 3 of 4
	take(4, "a", true, false)
	take(4, "a", false, false) // not yet half
	s.give(4)
	s.give(4)                 // 2 of 4
	take(2, "a", false, true) // TLS-2: a smaller limit leaves what is open
	take(8, "a", true, false)
	take(3, "a", false, true) // with 8 slots more than half were free
	for range 3 {
		s.give(3)
	}
	if s.taken != 0 || s.told != nil {
		t.Errorf("%+v", &s)
	}
}

func TestVIO15_MadeUpNamesAreBounded(t *testing.T) {
	var s tunnelSlots
	s.take(1, "")
	told := 0
	for i := range 2 * maxTold {
		if _, first := s.take(1, fmt.Sprint(i)); first {
			told++
		}
	}
	if told != maxTold || len(s.told) != maxTold {
		t.Errorf("%d told, %d remembered", told, len(s.told))
	}
}
