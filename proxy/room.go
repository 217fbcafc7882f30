package proxy

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/srt-sandbox/srt/proxy/credential"
)

// maxCollected is how many bytes of bodies to be signed, or to be sent with another length, are held at once, over all clients
// (TLS-45). One command has half of them, so that one whose uploads never end keeps no other from asking.
const (
	maxCollected = 4 * credential.MaxSigned
	maxOwn       = maxCollected / 2
)

// commandRoom is what one command has of that. The zero value is ready.
type commandRoom struct {
	once sync.Once
	left *semaphore.Weighted
}

func (r *commandRoom) get() *semaphore.Weighted {
	r.once.Do(func() { r.left = semaphore.NewWeighted(maxOwn) })
	return r.left
}

// takeRoom takes room for n bytes of bodies, at most [maxOwn], and waits for it until ctx ends.
func (s *Server) takeRoom(ctx context.Context, n int64) error {
	if err := s.scope.room.get().Acquire(ctx, n); err != nil {
		return err
	}
	if err := s.collected.Acquire(ctx, n); err != nil {
		s.scope.room.get().Release(n)
		return err
	}
	return nil
}

// tryRoom is takeRoom without waiting. It reports whether there was room.
func (s *Server) tryRoom(n int64) bool {
	if !s.scope.room.get().TryAcquire(n) {
		return false
	}
	if !s.collected.TryAcquire(n) {
		s.scope.room.get().Release(n)
		return false
	}
	return true
}

// giveRoom gives room back.
func (s *Server) giveRoom(n int64) {
	s.collected.Release(n)
	s.scope.room.get().Release(n)
}
