package violation

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// heard notes the lists a subscriber is called with, as the sequence numbers of their ends and their lengths.
type heard struct {
	mu    sync.Mutex
	lists []string
}

func (h *heard) call(list []Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text := fmt.Sprint(len(list))
	if len(list) > 0 {
		text += fmt.Sprintf(":%d-%d", list[0].Seq, list[len(list)-1].Seq)
	}
	h.lists = append(h.lists, text)
}

func (h *heard) want(t *testing.T, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.lists, want) {
		t.Errorf("called with %q, want %q", h.lists, want)
	}
}

func addN(s *Store, n int) {
	for range n {
		s.Add(refusal("a.test", ""))
	}
}

func TestVIO31_SubscribersSeeEveryList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Store
		var h heard
		addN(&s, 2)
		cancel := s.Subscribe(h.call, nil)
		h.want(t, "2:1-2") // at once
		addN(&s, 1)
		s.Clear()
		addN(&s, 1)
		synctest.Wait()
		h.want(t, "2:1-2", "3:1-3", "0", "1:4-4")
		cancel()
		cancel()
		addN(&s, 1)
		synctest.Wait()
		h.want(t, "2:1-2", "3:1-3", "0", "1:4-4")
	})
}

func TestVIO30_Case11_HundredAndFiveAdds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Store
		addN(&s, 105)
		if s.Len() != 100 || s.Total() != 105 || s.All()[0].Seq != 6 {
			t.Errorf("Len %d, Total %d, first %d", s.Len(), s.Total(), s.All()[0].Seq)
		}
		var h heard
		s.Subscribe(h.call, nil)
		s.Clear()
		synctest.Wait()
		h.want(t, "100:6-105", "0")
		if s.Len() != 0 || s.Total() != 105 {
			t.Errorf("after Clear: Len %d, Total %d", s.Len(), s.Total())
		}
	})
}

func TestVIO31_IgnoredEventsReachNoSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Store
		var h heard
		s.SetIgnore(Ignore{"*": {"a.test"}})
		s.Subscribe(h.call, nil)
		addN(&s, 3)
		synctest.Wait()
		h.want(t, "0")
	})
}

func TestVIO31_SlowAndFailingSubscribersAffectNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Store
		var good heard
		var recovered []any
		hold := make(chan struct{})
		calls, slow := 0, []int{}
		s.Subscribe(func(list []Record) {
			if slow = append(slow, len(list)); len(slow) == 2 {
				<-hold
			}
		}, nil)
		s.Subscribe(func([]Record) { calls++; panic(calls) }, func(r any) { recovered = append(recovered, r) })
		ends := 0
		s.Subscribe(func([]Record) {
			if ends++; ends > 1 {
				runtime.Goexit()
			}
		}, nil)
		s.Subscribe(good.call, nil)
		addN(&s, 3)
		synctest.Wait()
		good.want(t, "0", "1:1-1", "2:1-2", "3:1-3")
		if !slices.Equal(recovered, []any{1, 2, 3, 4}) {
			t.Errorf("panics: %v", recovered)
		}
		if ends != 4 {
			t.Errorf("a subscriber that ends its goroutine was called %d times, want 4", ends)
		}
		close(hold)
		synctest.Wait()
		if !slices.Equal(slow, []int{0, 1, 2, 3}) {
			t.Errorf("the slow one saw %v", slow)
		}
	})
}

func TestVIO31_OneThatLagsFarSeesTheLatestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Store
		hold, seen := make(chan struct{}), []uint64{}
		s.Subscribe(func(list []Record) {
			if len(list) == 0 {
				return
			}
			if len(seen) == 0 {
				<-hold
			}
			seen = append(seen, list[len(list)-1].Seq)
		}, nil)
		addN(&s, 3*maxChanges)
		synctest.Wait()
		s.mu.Lock()
		sub := s.subs[0]
		s.mu.Unlock()
		if len(sub.changes) > maxChanges {
			t.Errorf("%d changes wait", len(sub.changes))
		}
		close(hold)
		synctest.Wait()
		if len(seen) < 2 || seen[len(seen)-1] != 3*maxChanges || !slices.IsSorted(seen) {
			t.Errorf("saw %d lists, the last ends with %d", len(seen), seen[len(seen)-1])
		}
		addN(&s, 1)
		synctest.Wait()
		if got := seen[len(seen)-1]; got != 3*maxChanges+1 {
			t.Errorf("then %d", got)
		}
	})
}

// A subscriber may call the store, its own cancel function included (LIB-50).
func TestLIB50_SubscribersMayCallTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Store
		calls := 0
		cancels := make(chan func(), 1)
		cancels <- s.Subscribe(func([]Record) {
			if calls++; calls == 1 {
				addN(&s, 1) // before Subscribe has returned
				return
			}
			_, _ = s.All(), s.Total()
			s.Clear()
			(<-cancels)()
		}, nil)
		synctest.Wait()
		if calls != 2 {
			t.Errorf("%d calls", calls)
		}
	})
}

func TestLIB52_FeedGivesWhatIsHeldThenWhatIsNew(t *testing.T) {
	var s Store
	addN(&s, 2)
	f := s.Feed(0)
	addN(&s, 1)
	s.Clear()
	addN(&s, 1)
	s.Close()
	addN(&s, 1)
	if got := drain(t, f); !slices.Equal(got, []uint64{1, 2, 3, 4}) {
		t.Errorf("%v", got)
	}
	if got := drain(t, s.Feed(0)); !slices.Equal(got, []uint64{4, 5}) {
		t.Errorf("LIB-35: of a closed store: %v", got)
	}
}

func TestLIB52_AFeedThatLagsHasAGap(t *testing.T) {
	var s Store
	f := s.Feed(3)
	for range 50 {
		addN(&s, 2)
		if r, ok := f.Next(context.Background()); !ok || r.Seq == 0 {
			t.Fatal("no record")
		}
	}
	addN(&s, 10)
	s.Close()
	if got := drain(t, f); !slices.Equal(got, []uint64{108, 109, 110}) {
		t.Errorf("%v", got)
	}
	if len(f.pending) > 2*f.limit+2 {
		t.Errorf("%d records are kept", len(f.pending))
	}
}

func TestLIB52_FeedsEndWithContextAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Store
		ctx, cancel := context.WithCancel(context.Background())
		var ended atomic.Int32
		for _, f := range []*Feed{s.Feed(1), s.Feed(1)} {
			go func() {
				if _, ok := f.Next(ctx); !ok {
					ended.Add(1)
				}
				f.Stop()
				f.Stop()
			}()
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		stopped := s.Feed(1)
		go func() {
			if _, ok := stopped.Next(context.Background()); !ok {
				ended.Add(1)
			}
		}()
		synctest.Wait()
		stopped.Stop()
		synctest.Wait()
		if ended.Load() != 3 || len(s.feeds) != 0 {
			t.Errorf("%d ended, %d feeds left", ended.Load(), len(s.feeds))
		}
	})
}

// drain reads a feed to its end.
func drain(t *testing.T, f *Feed) (seqs []uint64) {
	t.Helper()
	for {
		r, ok := f.Next(t.Context())
		if !ok {
			return seqs
		}
		seqs = append(seqs, r.Seq)
	}
}

func TestLIB52_ANoisyCommandLeavesAnothersTail(t *testing.T) {
	var s Store
	s.Register("quiet", "q")
	s.Register("noisy", "n")
	s.Add(refusal("quiet.test", "quiet"))
	for range 300 {
		s.Add(refusal("noisy.test", "noisy"))
	}
	if got := lines(s.ForKey("quiet")); len(got) != 1 || !strings.Contains(got[0], "quiet.test") {
		t.Errorf("quiet: %q", got)
	}
	if got := s.Tail("noisy"); len(got) != Held || got[0].Seq != 202 {
		t.Errorf("noisy: %d from %d", len(got), got[0].Seq)
	}
	if got := s.Unregister("quiet"); len(got) != 1 {
		t.Errorf("quiet at its end: %q", lines(got))
	}
	if got := s.ForKey("quiet"); len(got) != 1 {
		t.Errorf("VIO-33: after its end: %q", lines(got))
	}
	s.Add(refusal("late.test", "quiet"))
	if got := lines(s.ForKey("quiet")); len(got) != 2 || !strings.Contains(got[1], "late.test") {
		t.Errorf("a late one: %q", got)
	}
	s.Clear()
	if got := s.ForKey("noisy"); got != nil {
		t.Errorf("VIO-30: after Clear: %q", lines(got))
	}
	if got := s.Tail("noisy"); len(got) != Held {
		t.Errorf("Clear took %d records of a tail", Held-len(got))
	}
	s.Register("quiet", "again")
	if got := s.Tail("quiet"); got != nil {
		t.Errorf("a later command has the tail of an earlier one: %q", lines(got))
	}
	if s.Unregister("nobody") != nil || s.Unregister("") != nil || s.Tail("") != nil {
		t.Error("a key that was never registered has a tail")
	}
}

func TestVIO2_CommandsWithOneKeyAreOne(t *testing.T) {
	var s Store
	long := strings.Repeat("k", 100)
	s.Register(long+"1", "one")
	s.Register(long+"2", "two")
	s.Add(refusal("a.test", long))
	if got := s.Unregister(long + "1"); len(got) != 1 || got[0].Command != "two" {
		t.Errorf("%q", lines(got))
	}
	s.Add(refusal("b.test", long))
	if got := s.Unregister(long + "2"); len(got) != 2 {
		t.Errorf("the other one still runs: %q", lines(got))
	}
}

func TestVIO5_RunningCommandsKeepTheirText(t *testing.T) {
	var s Store
	s.Register("old", "old text")
	for i := range 2 * Launches {
		key := fmt.Sprint(i)
		s.Register(key, "t")
		s.Add(refusal("a.test", key))
		s.Unregister(key)
	}
	if r, _ := s.Add(refusal("a.test", "old")); r.Command != "old text" {
		t.Errorf("Command %q", r.Command)
	}
	s.Unregister("old")
	if got := s.ForKey("old"); len(got) != 1 {
		t.Errorf("VIO-33: after its end: %q", lines(got))
	}
	withTail := 0
	for _, c := range s.commands.known {
		if c.tail.len() > 0 {
			withTail++
		}
	}
	if len(s.commands.known) != Launches+1 || len(s.commands.tails) != endedTails || withTail != endedTails {
		t.Errorf("%d known, %d tails, %d with a tail", len(s.commands.known), len(s.commands.tails), withTail)
	}
	s.Register("running", "text")
	s.Add(refusal("a.test", "running"))
	s.Forget()
	if got := s.Tail("running"); len(got) != 1 || len(s.commands.known) > endedTails+1 {
		t.Errorf("LIB-35: after Forget %q, %d known", lines(got), len(s.commands.known))
	}
	if got := s.Unregister("running"); len(got) != 1 {
		t.Errorf("LIB-35: at its end %q", lines(got))
	}
}

func TestLostEventsAreCounted(t *testing.T) {
	var s Store
	s.NoteLost(0)
	s.NoteLost(3)
	s.NoteLost(4)
	if s.Lost() != 7 || s.Total() != 0 {
		t.Errorf("Lost %d, Total %d", s.Lost(), s.Total())
	}
}

func TestSubscribersAndFeedsAreSafeForManyGoroutines(t *testing.T) {
	var s Store
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 100 {
				key := fmt.Sprint(i, j)
				cancel := s.Subscribe(func([]Record) { s.Len() }, nil)
				f := s.Feed(2)
				s.Register(key, key)
				s.Add(refusal("a.test", key))
				if _, ok := f.Next(context.Background()); !ok {
					t.Error("the feed has ended")
				}
				f.Stop()
				s.Clear()
				if got := s.Unregister(key); len(got) != 1 {
					t.Errorf("%q has %d records", key, len(got))
				}
				cancel()
			}
		})
	}
	wg.Wait()
	s.Close()
}
