package broker

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// shortest is a time limit of one tick of the kernel's clock.
var shortest = unix.Timeval{Usec: 1}

// unixTimeouts are the time limits (SO_SNDTIMEO, socket(7)) of callers' sockets that have been shortened for the moment.
type unixTimeouts struct {
	mu    sync.Mutex
	saved map[uint64]*unixTimeout
	short unix.Timeval // what the kernel makes of the shortest; zero: not known yet
}

// unixTimeout is one of them, by the socket's cookie.
type unixTimeout struct {
	users int
	value unix.Timeval // the caller's
}

// shorten sets a socket's time limit to the shortest. It gives the caller's, 0 for none, and what puts that back; of several
// calls on one socket the last one does. The caller may see the short limit meanwhile; one that it sets itself stays.
func (t *unixTimeouts) shorten(socket int) (limit time.Duration, restore func(), err error) {
	cookie, err := cookieOf(socket)
	if err != nil {
		return 0, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	value, err := limitOf(socket)
	if err != nil {
		return 0, nil, err
	}
	held := t.saved[cookie]
	switch {
	case held == nil:
		held = &unixTimeout{value: value}
	case value != t.short:
		held.value = value // a thread of the caller has set it meanwhile
	}
	if err := t.set(socket); err != nil {
		return 0, nil, err
	}
	if t.saved == nil {
		t.saved = map[uint64]*unixTimeout{}
	}
	t.saved[cookie] = held
	held.users++
	return time.Duration(held.value.Nano()), func() { t.restore(socket, cookie, held) }, nil
}

// set sets the shortest limit. t.mu is held.
func (t *unixTimeouts) set(socket int) error {
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &shortest); err != nil {
		return fmt.Errorf("shorten a socket's time limit (SO_SNDTIMEO): %w", err)
	}
	if t.short == (unix.Timeval{}) {
		short, err := ownShortest()
		if err != nil {
			return err
		}
		t.short = short
	}
	return nil
}

// ownShortest asks what the shortest limit reads as, of a socket that no program has.
func ownShortest() (unix.Timeval, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return unix.Timeval{}, fmt.Errorf("make a socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &shortest); err != nil {
		return unix.Timeval{}, fmt.Errorf("set a time limit (SO_SNDTIMEO): %w", err)
	}
	return limitOf(fd)
}

// restore gives the caller's limit back, unless a thread of it has set another one.
func (t *unixTimeouts) restore(socket int, cookie uint64, held *unixTimeout) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if held.users--; held.users > 0 {
		return
	}
	delete(t.saved, cookie)
	if value, err := limitOf(socket); err == nil && value == t.short {
		// The very value was there before, and the socket is.
		_ = unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &held.value)
	}
}

// again shortens the limit of a socket once more, whose limit has been shortened and not been restored. own tells whether
// a thread of the caller had set another one.
func (t *unixTimeouts) again(socket int) (own bool, errno syscall.Errno) {
	t.mu.Lock()
	defer t.mu.Unlock()
	value, err := limitOf(socket)
	if err != nil || value == t.short {
		return false, 0
	}
	if cookie, err := cookieOf(socket); err == nil {
		if held := t.saved[cookie]; held != nil {
			held.value = value
		}
	}
	if err := t.set(socket); err != nil {
		return true, unix.EIO
	}
	return true, 0
}

func limitOf(socket int) (unix.Timeval, error) {
	value, err := unix.GetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil {
		return unix.Timeval{}, fmt.Errorf("ask for a socket's time limit (SO_SNDTIMEO): %w", err)
	}
	return *value, nil
}
