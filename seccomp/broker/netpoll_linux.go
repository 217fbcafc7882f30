package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// poller waits for sockets, however many, with one goroutine and no thread of its own. The sockets are programs' own and in
// whatever mode those chose, so the runtime's poller cannot be given them: it is given an epoll descriptor with them.
type poller struct {
	mu      sync.Mutex
	epoll   int
	file    *os.File // of epoll, nil until needed
	waiting map[uint64]chan struct{}
	next    uint64
	wait    sync.WaitGroup
}

// watched is a socket that is waited for.
type watched struct {
	poller *poller
	fd     int
	key    uint64
	ready  chan struct{} // closed when it is
}

// watch begins to wait until something can be done with a descriptor (epoll_ctl(2)), which stays the caller's. It must be
// stopped before that is closed.
func (p *poller) watch(fd int, events uint32) (*watched, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		if err := p.start(); err != nil {
			return nil, fmt.Errorf("wait for sockets (epoll_create1): %w", err)
		}
	}
	p.next++
	w := &watched{poller: p, fd: fd, key: p.next, ready: make(chan struct{})}
	e := unix.EpollEvent{Events: events | unix.EPOLLONESHOT, Fd: int32(uint32(w.key)), Pad: int32(uint32(w.key >> 32))}
	p.waiting[w.key] = w.ready
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		delete(p.waiting, w.key)
		return nil, fmt.Errorf("wait for a socket (epoll_ctl): %w", err)
	}
	return w, nil
}

// stop ends the waiting. It is called once.
func (w *watched) stop() {
	w.poller.mu.Lock()
	defer w.poller.mu.Unlock()
	delete(w.poller.waiting, w.key)
	_ = unix.EpollCtl(w.poller.epoll, unix.EPOLL_CTL_DEL, w.fd, nil) // it is there: fd has been kept open
}

// start makes the epoll descriptor. p.mu is held.
func (p *poller) start() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // by which os knows what it can poll
		return errors.Join(err, unix.Close(fd))
	}
	p.epoll, p.file, p.waiting = fd, os.NewFile(uintptr(fd), "sockets of programs"), map[uint64]chan struct{}{}
	raw, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	p.wait.Go(func() {
		events := make([]unix.EpollEvent, 64)
		for {
			n := 0
			err := raw.Read(func(fd uintptr) bool {
				n, _ = unix.EpollWait(int(fd), events, 0) // an error is as good as nothing
				return n > 0
			})
			if err != nil {
				return // it has been closed
			}
			p.tell(events[:max(n, 0)])
		}
	})
	return nil
}

func (p *poller) tell(events []unix.EpollEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range events {
		key := uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
		if ready, ok := p.waiting[key]; ok {
			delete(p.waiting, key)
			close(ready)
		}
	}
}

// close ends the goroutine. Nobody waits.
func (p *poller) close() {
	p.mu.Lock()
	if p.file != nil {
		_ = p.file.Close() // nothing is lost with it
	}
	p.mu.Unlock()
	p.wait.Wait()
}

// awaitSocket waits for a socket until limit is over or ctx ends. Whether it is ready is for the caller to ask.
func (n *network) awaitSocket(ctx context.Context, fd int, limit time.Duration) error {
	w, err := n.poller.watch(fd, unix.EPOLLOUT)
	if err != nil {
		return err
	}
	defer w.stop()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}
