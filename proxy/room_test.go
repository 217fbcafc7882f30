package proxy

import (
	"context"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/srt-sandbox/srt/proxy/credential"
)

// TestTLS45_RoomOfOneCommand holds that a command with uploads that never end keeps no room from another one, and that what
// could not be taken whole is not held in part.
func TestTLS45_RoomOfOneCommand(t *testing.T) {
	all := &shared{collected: semaphore.NewWeighted(maxCollected)}
	greedy, other := &Server{shared: all, scope: &scope{}}, &Server{shared: all, scope: &scope{}}
	ended, end := context.WithCancel(t.Context())
	end()
	taken := int64(0)
	for ; greedy.tryRoom(credential.MaxSigned); taken += credential.MaxSigned {
		continue
	}
	if taken == 0 || taken > maxCollected/2 {
		t.Errorf("one command holds %d of %d bytes", taken, maxCollected)
	}
	if greedy.takeRoom(ended, credential.MaxSigned) == nil {
		t.Error("it has more than it may")
	}
	if err := other.takeRoom(t.Context(), credential.MaxSigned); err != nil {
		t.Fatal(err)
	}
	if !all.collected.TryAcquire(maxCollected - taken - credential.MaxSigned) {
		t.Fatal("room is held that nobody has")
	}
	if other.tryRoom(1) || other.takeRoom(ended, 1) == nil {
		t.Error("there is no room left over all commands")
	}
	greedy.giveRoom(taken)
	if !other.tryRoom(maxOwn-credential.MaxSigned) || !greedy.tryRoom(1) {
		t.Error("room was not given back")
	}
}
