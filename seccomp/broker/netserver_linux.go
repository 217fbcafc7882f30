package broker

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

// maxDialling is how many connections may be under way to their destination at the same time, maxFailed how many failures
// are kept that no program has asked for yet.
const (
	maxDialling = 4096
	maxFailed   = 4096
)

// network is what a Server knows of connections. A connection is known by the cookie of the program's socket
// (SO_COOKIE), which no other socket ever has.
type network struct {
	server *Server
	ctx    context.Context
	cancel context.CancelFunc
	// goroutines are those that dial, and those that wait in the place of a call. Serve waits for them.
	goroutines sync.WaitGroup

	accepting sync.Mutex       // held from the connecting of a socket to the capturing listener until it is accepted
	capture   *net.TCPListener // nil until the first one
	turn      atomic.Uint32
	spares    spares

	mu          sync.Mutex
	connections map[uint64]*connection
	failed      []*connection // in the order of their failing; some have been asked for meanwhile
	dialling    int
	limit       int // of those: maxDialling
	stopped     bool
	connecting  map[int]int // sockets that are in connect(2), and how often
	known       atomic.Int32
}

func (n *network) prepare(s *Server) {
	n.server, n.limit = s, maxDialling
	n.connections, n.connecting = map[uint64]*connection{}, map[int]int{}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.spares.server = s
}

// stop ends all dialling, and what waits for it, soon. It is idempotent and does not wait.
func (n *network) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return
	}
	n.stopped = true
	n.cancel()
	if len(n.connecting) > 0 {
		n.goroutines.Add(1) // a worker is in connect(2), so Serve does not wait for goroutines yet
		go n.hurry()
	}
}

// finish waits until nothing of the network is left. The workers have ended.
func (n *network) finish() {
	n.stop()
	n.goroutines.Wait()
	n.spares.close()
	if n.capture != nil {
		_ = n.capture.Close()
	}
}

// hurry ends the calls of connect(2) that are under way. None of them waits, unless threads of a program changed the
// socket in the middle of it, twice.
func (n *network) hurry() {
	defer n.goroutines.Done()
	again := time.NewTicker(lookFirst) // a shutdown that came before the call ended nothing
	defer again.Stop()
	for ; ; <-again.C {
		n.mu.Lock()
		for fd := range n.connecting {
			_ = unix.Shutdown(fd, unix.SHUT_RDWR) // it wakes who waits; a socket without a connection has nobody
		}
		left := len(n.connecting)
		n.mu.Unlock()
		if left == 0 {
			return
		}
	}
}

// connect is connect(2) on a program's socket, of which fd is a copy, without waiting for longer than a tick of the
// kernel's clock whatever the socket's mode: what is not done by then goes on, and is EINPROGRESS or EALREADY. limit is
// the program's own time limit (SO_SNDTIMEO), 0 for none.
func (n *network) connect(fd int, address []byte) (limit time.Duration, errno syscall.Errno) {
	limit, restore, err := n.server.unix.timeouts.shorten(fd)
	if err != nil {
		return 0, n.trouble(err)
	}
	defer restore()
	if !n.enter(fd) {
		return limit, unix.EINTR
	}
	defer n.leave(fd)
	if errno = socket.Connect(fd, address); errno == unix.EINTR {
		errno = unix.EINPROGRESS // interrupted in that tick by a signal to this process
	}
	return limit, errno
}

func (n *network) enter(fd int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connecting[fd]++
	return !n.stopped || n.drop(fd)
}

func (n *network) leave(fd int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(fd)
}

// drop takes a socket off the list of those in connect(2), and is false. n.mu is held.
func (n *network) drop(fd int) bool {
	if n.connecting[fd]--; n.connecting[fd] == 0 {
		delete(n.connecting, fd)
	}
	return false
}

// trouble reports a failure that belongs to no call.
func (n *network) trouble(err error) syscall.Errno {
	n.server.report(Denial{Call: "connect", Err: err})
	return unix.EIO
}

// disconnect takes a program's socket back to where it can be connected anew.
func (n *network) disconnect(fd int) { _ = socket.Connect(fd, socket.Unspecified()) }

// find gives the connection of a socket, nil if none is known.
func (n *network) find(fd int) (*connection, error) {
	if n.known.Load() == 0 {
		return nil, nil
	}
	cookie, err := cookieOf(fd)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.connections[cookie], nil
}

func cookieOf(fd int) (uint64, error) {
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("ask for a socket's cookie: %w", err)
	}
	return cookie, nil
}

// add takes a connection on, which is to be dialled from now on. EALREADY says that another call is dialling for that very
// socket, EAGAIN that too many are under way.
func (n *network) add(x *connection) syscall.Errno {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.connections[x.cookie]
	switch {
	case n.stopped:
		return unix.EINTR
	case old != nil && old.state == dialling:
		return unix.EALREADY
	case n.dialling >= n.limit:
		return unix.EAGAIN
	}
	n.dialling++
	n.goroutines.Add(1)
	n.connections[x.cookie] = x
	n.known.Store(int32(len(n.connections)))
	return 0
}

// forget drops what is known of a connection.
func (n *network) forget(x *connection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.remove(x)
}

// remove is forget with n.mu held.
func (n *network) remove(x *connection) {
	if n.connections[x.cookie] == x {
		delete(n.connections, x.cookie)
		n.known.Store(int32(len(n.connections)))
	}
}

// settle says how the dialling of a connection has ended. keep says that the program is to find out by asking.
func (n *network) settle(x *connection, errno syscall.Errno, keep bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.connections[x.cookie] != x {
		return // another one's turn, after connect(AF_UNSPEC)
	}
	switch {
	case errno == 0:
		x.state = open
	case !keep:
		n.remove(x)
	default:
		x.state, x.errno = broken, errno
		if len(n.failed) >= maxFailed {
			n.remove(n.failed[0])
			n.failed = append(n.failed[:0], n.failed[1:]...)
		}
		n.failed = append(n.failed, x)
	}
}
