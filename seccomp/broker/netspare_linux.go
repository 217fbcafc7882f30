package broker

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// spareBatch is how many sockets a hand makes at a time, spareLow how few are left when it makes the next ones.
const (
	spareBatch = 8
	spareLow   = 2
)

// spares are TCP sockets that were made in the sandbox and not used yet, by their family.
type spares struct {
	server *Server

	making sync.Mutex // held while the hand is in use

	mu      sync.Mutex
	hand    Hand
	four    []int
	six     []int
	filling map[int]bool
}

// of is the list of a family. p.mu is held.
func (p *spares) of(family int) *[]int {
	if family == unix.AF_INET6 {
		return &p.six
	}
	return &p.four
}

// take gives a socket, non-blocking, which is the caller's. Only goroutines of the network call it.
func (p *spares) take(family int) (int, error) {
	fd := p.pop(family)
	if fd >= 0 {
		return fd, nil
	}
	p.making.Lock()
	defer p.making.Unlock()
	if fd := p.pop(family); fd >= 0 { // made for another one meanwhile
		return fd, nil
	}
	if err := p.make(family); err != nil {
		return -1, fmt.Errorf("make sockets in the sandbox: %w", err)
	}
	return p.pop(family), nil
}

// pop takes a socket from the list, -1 if there is none, and has more made where few are left.
func (p *spares) pop(family int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.of(family)
	last := len(*list) - 1
	if last < 0 {
		return -1
	}
	fd := (*list)[last]
	*list = (*list)[:last]
	if last == spareLow && !p.filling[family] {
		if p.filling == nil {
			p.filling = map[int]bool{}
		}
		p.filling[family] = true
		p.server.network.goroutines.Add(1) // by one that is counted itself
		go p.refill(family)
	}
	return fd
}

// refill makes sockets ahead. A failure is that of whoever needs one later.
func (p *spares) refill(family int) {
	defer p.server.network.goroutines.Done()
	p.making.Lock()
	defer p.making.Unlock()
	_ = p.make(family)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filling[family] = false
}

// make has a hand make a batch. p.making is held.
func (p *spares) make(family int) error {
	hand, err := p.getHand()
	if err != nil {
		return err
	}
	program := hand.Program()
	made := make([]ns.Slot, spareBatch)
	for i := range made {
		made[i] = program.Call("make", "a socket", unix.SYS_SOCKET, ns.Int(family), ns.Int(unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK), ns.Int(unix.IPPROTO_TCP))
	}
	program.SendFiles(0, "the sockets", made...)
	r, err := hand.Do()
	if err == nil {
		err = r.Err()
	} else {
		p.dropHand() // it is of no more use
	}
	defer r.Close()
	if err != nil {
		return err
	}
	return p.put(family, &r)
}

// getHand gives the hand, a new one if there is none. p.making is held.
func (p *spares) getHand() (Hand, error) {
	p.mu.Lock()
	h := p.hand
	p.mu.Unlock()
	switch {
	case p.server.network.ctx.Err() != nil:
		return nil, errHandKilled
	case h != nil:
		return h, nil
	}
	h, err := p.server.config.NewHand()
	if err != nil {
		return nil, fmt.Errorf("start a hand: %w", err)
	}
	p.mu.Lock()
	p.hand = h
	p.mu.Unlock()
	if p.server.network.ctx.Err() != nil { // it has come too late to be killed
		p.dropHand()
		return nil, errHandKilled
	}
	return h, nil
}

// unused tells whether there is no hand yet.
func (p *spares) unused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hand == nil
}

// dropHand ends the hand, if there is one. p.making is held.
func (p *spares) dropHand() {
	p.mu.Lock()
	h := p.hand
	p.hand = nil
	p.mu.Unlock()
	if h != nil {
		_ = h.Close() // it is gone either way
	}
}

// kill ends what the hand is doing, for good: the network's context has ended.
func (p *spares) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hand != nil {
		_ = p.hand.Kill() // one that has ended needs no killing
	}
}

// put takes over what the hand sent.
func (p *spares) put(family int, r *ns.HandResult) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, before := p.of(family), len(*p.of(family))
	for _, f := range r.Files {
		if f == nil {
			continue
		}
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			err = unix.SetNonblock(fd, true) // which Fd has taken off
		}
		if err != nil {
			continue
		}
		*list = append(*list, fd)
	}
	if len(*list) == before {
		return errors.Join(errLost, errSpare)
	}
	return nil
}

// errSpare says what was to come.
var errSpare = errors.New("no socket came")

// close gives all back. Nothing may be under way.
func (p *spares) close() {
	p.making.Lock()
	defer p.making.Unlock()
	p.dropHand()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range []*[]int{&p.four, &p.six} {
		for _, fd := range *list {
			unix.Close(fd)
		}
		*list = nil
	}
}
