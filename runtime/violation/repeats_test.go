package violation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func counter(pid int, key string) Event {
	return Event{PID: pid, Operation: "openat", Target: "/home/me/.config/tool/counter", Rule: "filesystem.allowWrite", Kind: KindFileWrite, CommandID: key}
}

// held are the records of a list: last part of the target, sequence number, repeats.
func held(records []Record) (out []string) {
	for _, r := range records {
		out = append(out, fmt.Sprintf("%s %d+%d", r.Event.Target[strings.LastIndexByte(r.Event.Target, '/')+1:], r.Seq, r.Repeats))
	}
	return out
}

func TestVIO30_RepeatsOfFilesAreHeldAsOne(t *testing.T) {
	var s Store
	s.Register("a", "go build")
	s.Register("b", "go build")
	key := Event{Operation: "openat", Target: "/home/me/.ssh/key", Rule: "filesystem.denyRead.0", Kind: KindFileRead, CommandID: "a"}
	s.Add(counter(1, "a"))
	s.Add(key)
	for pid := range 300 {
		s.Add(counter(pid, "a"))
	}
	s.Add(counter(1, "b"))
	if got, want := held(s.All()), []string{"key 2+0", "counter 302+300", "counter 303+0"}; !slices.Equal(got, want) {
		t.Errorf("held: %q, want %q", got, want)
	}
	if got, want := held(s.ForKey("a")), []string{"key 2+0", "counter 302+300"}; !slices.Equal(got, want) {
		t.Errorf("of one command: %q, want %q", got, want)
	}
	if s.Len() != 3 || s.Total() != 303 {
		t.Errorf("Len %d, Total %d: each counts", s.Len(), s.Total())
	}
	s.Add(key)
	if got, want := held(s.Unregister("a")), []string{"counter 302+300", "key 304+1"}; !slices.Equal(got, want) {
		t.Errorf("tail: %q, want %q", got, want)
	}
}

func TestVIO30_WhatIsNoRepeat(t *testing.T) {
	first := counter(1, "a")
	for name, change := range map[string]func(*Event){
		"another call":    func(e *Event) { e.Operation = "unlinkat" },
		"another path":    func(e *Event) { e.Target += "x" },
		"another rule":    func(e *Event) { e.Rule = "filesystem.denyWrite.0" },
		"another access":  func(e *Event) { e.Kind = KindFileRead },
		"another command": func(e *Event) { e.CommandID = "b" },
	} {
		t.Run(name, func(t *testing.T) {
			var s Store
			second := first
			change(&second)
			s.Add(first)
			if r, _ := s.Add(second); r.Repeats != 0 || s.Len() != 2 {
				t.Errorf("%d held, %d repeats", s.Len(), r.Repeats)
			}
		})
	}
	for name, e := range map[string]Event{
		"unattributed": counter(1, ""), "host": refusal("a.test", "a"), "name": {Operation: DNSQuery, Target: "a.test", CommandID: "a"},
		"request": {Operation: HTTPRequest, Target: "GET http://a.test/", CommandID: "a"}, "tunnel": {Operation: SOCKSTunnel, Target: "a.test:1", CommandID: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			var s Store
			s.Add(e)
			if r, _ := s.Add(e); r.Repeats != 0 || s.Len() != 2 {
				t.Errorf("%d held, %d repeats", s.Len(), r.Repeats)
			}
		})
	}
}

// A full list, whose oldest lies anywhere, stays in order.
func TestVIO30_RepeatsInAFullList(t *testing.T) {
	var s Store
	add := func(i int) { s.Add(Event{Operation: "openat", Target: fmt.Sprintf("/%d", i), CommandID: "a"}) }
	for i := range Held + 30 {
		add(i)
	}
	for _, again := range []int{Held + 29, 30, 31, 90, 30} {
		add(again)
		all := s.All()
		if len(all) != Held || all[len(all)-1].Event.Target != fmt.Sprintf("/%d", again) {
			t.Fatalf("%d: %d held, the last is %+v", again, len(all), all[len(all)-1])
		}
		if !slices.IsSortedFunc(all, func(a, b Record) int { return int(a.Seq) - int(b.Seq) }) {
			t.Errorf("%d: out of order: %q", again, held(all))
		}
	}
	if last := s.Recent(1)[0]; last.Repeats != 2 {
		t.Errorf("%d repeats, want 2", last.Repeats)
	}
}

func TestVIO31_EachRepeatIsTold(t *testing.T) {
	var s Store
	s.Register("a", "go build")
	feed := s.Feed(0)
	calls := make(chan []string, 8)
	cancel := s.Subscribe(func(list []Record) { calls <- held(list) }, nil)
	defer cancel()
	want := []string{"counter 1+0", "counter 2+1", "counter 3+2"}
	if got := <-calls; got != nil {
		t.Fatalf("called with %q", got)
	}
	for i := range want {
		s.Add(counter(i, "a"))
		if got := <-calls; !slices.Equal(got, want[i:i+1]) {
			t.Errorf("called with %q, want %q", got, want[i])
		}
	}
	s.Close()
	var got []Record
	for {
		r, ok := feed.Next(context.Background())
		if !ok {
			break
		}
		got = append(got, r)
	}
	if !slices.Equal(held(got), want) {
		t.Errorf("fed %q, want %q", held(got), want)
	}
	if line := string(AppendJSON(nil, got[2])); !strings.Contains(line, `"seq":3,"repeats":2,`) {
		t.Errorf("%s", line)
	}
	if line := string(AppendJSON(nil, got[0])); strings.Contains(line, "repeats") {
		t.Errorf("%s", line)
	}
}
