package decider

import "testing"

// step is one event of a sequence: a letter and an id.
//
//	r  req is sent                 B  body is about to be sent; b: it is not, as the verdict came
//	g  the proxy gives up          a, d, n  allow, deny, need_body that is delivered
//	x, y, z  allow, deny, need_body that is dropped
type step struct {
	event byte
	id    uint64
}

func play(t *testing.T, name string, steps []step, last action, id uint64, want Reason) {
	t.Helper()
	b := newBook()
	for i, s := range steps {
		act := map[byte]action{'a': actionAllow, 'x': actionAllow, 'd': actionDeny, 'y': actionDeny, 'n': actionNeedBody, 'z': actionNeedBody}
		switch s.event {
		case 'r':
			if got, ok := b.ask(newWaiting()); !ok || got != s.id {
				t.Fatalf("%s: step %d: id %d, %v", name, i, got, ok)
			}
		case 'B', 'b':
			if got := b.sendsBody(s.id); got != (s.event == 'B') {
				t.Fatalf("%s: step %d: sendsBody is %v", name, i, got)
			}
		case 'g':
			b.giveUp(s.id)
		default:
			w, reason := b.verdict(s.id, act[s.event])
			if reason != "" || (w != nil) != (s.event < 'x') {
				t.Fatalf("%s: step %d: delivered %v, reason %q", name, i, w != nil, reason)
			}
		}
	}
	if _, got := b.verdict(id, last); got != want {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

func TestPRX53_57_Sequences(t *testing.T) {
	waits := reasonNothingWaits(1)
	for _, test := range []struct {
		name  string
		steps []step
		last  action
		id    uint64
		want  Reason
	}{
		{"case 19 nothing was asked", nil, actionAllow, 1, waits},
		{"an id that was not sent yet", []step{{'r', 1}}, actionAllow, 2, reasonNothingWaits(2)},
		{"allow", []step{{'r', 1}}, actionAllow, 1, ""},
		{"twice", []step{{'r', 1}, {'a', 1}}, actionAllow, 1, waits},
		{"deny after allow", []step{{'r', 1}, {'a', 1}}, actionDeny, 1, waits},
		{"need_body after deny", []step{{'r', 1}, {'d', 1}}, actionNeedBody, 1, waits},
		{"any order", []step{{'r', 1}, {'r', 2}, {'a', 2}}, actionDeny, 1, ""},
		{"case 17 deny while the body is read", []step{{'r', 1}, {'n', 1}}, actionDeny, 1, ""},
		{"case 17 allow while the body is read", []step{{'r', 1}, {'n', 1}}, actionAllow, 1, reasonEarly},
		{"need_body while the body is read", []step{{'r', 1}, {'n', 1}}, actionNeedBody, 1, reasonEarly},
		{"no body is sent after that deny", []step{{'r', 1}, {'n', 1}, {'d', 1}, {'b', 1}}, actionDeny, 1, waits},
		{"allow after the body", []step{{'r', 1}, {'n', 1}, {'B', 1}}, actionAllow, 1, ""},
		{"PRX-42 need_body after the body", []step{{'r', 1}, {'n', 1}, {'B', 1}}, actionNeedBody, 1, reasonNoNeedBody},
		{"case 18 late need_body, allow, and a second allow", []step{{'r', 1}, {'g', 1}, {'z', 1}, {'x', 1}}, actionAllow, 1, waits},
		{"late allow", []step{{'r', 1}, {'g', 1}, {'x', 1}}, actionDeny, 1, waits},
		{"late deny", []step{{'r', 1}, {'g', 1}, {'y', 1}}, actionDeny, 1, waits},
		{"late need_body twice", []step{{'r', 1}, {'g', 1}, {'z', 1}}, actionNeedBody, 1, reasonSecondNeed},
		{"late need_body when one was used", []step{{'r', 1}, {'n', 1}, {'g', 1}}, actionNeedBody, 1, reasonSecondNeed},
		{"late allow when one was used", []step{{'r', 1}, {'n', 1}, {'B', 1}, {'g', 1}, {'x', 1}}, actionAllow, 1, waits},
		{"given up after the verdict came", []step{{'r', 1}, {'a', 1}, {'g', 1}}, actionAllow, 1, waits},
	} {
		play(t, test.name, test.steps, test.last, test.id, test.want)
	}
}

func TestPRX57_Forgotten(t *testing.T) {
	b := newBook()
	first := newWaiting()
	ask := func(w *waiting) uint64 {
		id, ok := b.ask(w)
		if !ok {
			t.Fatal("no id")
		}
		return id
	}
	ask(first)           // 1 is waited for all along
	b.giveUp(ask(first)) // 2 is given up
	b.verdict(ask(first), actionAllow)
	for b.newest < 3+forgotten-1 {
		b.verdict(ask(first), actionDeny)
	}
	if _, reason := b.verdict(3, actionAllow); reason != reasonNothingWaits(3) {
		t.Errorf("4095 below the newest: %q", reason)
	}
	for _, id := range []uint64{2, 2} {
		if w, reason := b.verdict(id, actionNeedBody); w != nil || reason != "" {
			t.Errorf("4096 and more below the newest: %q", reason)
		}
	}
	b.verdict(ask(first), actionDeny)
	if w, reason := b.verdict(3, actionAllow); w != nil || reason != "" {
		t.Errorf("4096 below the newest: %q", reason)
	}
	if w, reason := b.verdict(1, actionAllow); w != first || reason != "" {
		t.Errorf("a request that waits is not forgotten: %q", reason)
	}
	if len(b.slots) != 0 {
		t.Errorf("%d ids are kept", len(b.slots))
	}
	b.giveUp(ask(first))
	late := ask(first)
	for b.newest < late+forgotten {
		b.verdict(ask(first), actionDeny)
	}
	b.giveUp(late)
	if len(b.slots) != 0 {
		t.Errorf("%d ids are kept of those that were given up", len(b.slots))
	}
}

func TestPRX35_IDsEnd(t *testing.T) {
	b := newBook()
	b.newest = maxInteger - 1
	if id, ok := b.ask(newWaiting()); !ok || id != maxInteger {
		t.Fatal(id, ok)
	}
	if _, ok := b.ask(newWaiting()); ok {
		t.Error("an id beyond 2^53-1")
	}
}
