package broker

import (
	"context"
	"fmt"
	"net/netip"
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

// joinLimit is how long the two ends of a connection within the sandbox may take to meet. The kernel needs microseconds, unless
// the program has its socket drop what comes (IP_MINTTL, SO_ATTACH_FILTER).
const joinLimit = 200 * time.Millisecond

// maxTunnels is how many connections there may be altogether. The shares are which part of this process's descriptors one of
// them may take. While it is dialled for it holds the copy of the program's socket, what is dialled, and soon the other end;
// after that both of these, and two pipes for what they move.
const (
	maxTunnels    = 1 << 16
	diallingShare = 8
	tunnelShare   = 7
)

// network is what a Server knows of connections. A connection is known by the cookie of the program's socket
// (SO_COOKIE), which no other socket ever has.
//
// A program can keep the other end of each of its connections waiting, and changes its sockets at any time. So a worker
// makes no call that waits for a program, and takes no lock that is held meanwhile: it goes apart (apartFrom). What waits for
// the other end does so with the network's context, which ends with the Server.
type network struct {
	server *Server
	ctx    context.Context
	cancel context.CancelFunc
	// goroutines are those that dial, and those that wait in the place of a call. Serve waits for them.
	goroutines sync.WaitGroup
	apart      atomic.Int32  // calls that have gone apart
	waiters    atomic.Int32  // callers that are looked at
	patience   time.Duration // joinLimit

	guard     guard
	poller    poller
	arrivals  arrivals
	own       atomic.Pointer[ownNetwork]
	turn      atomic.Uint32
	spares    spares
	diagnosis diagnosis

	mu          sync.Mutex
	connections map[uint64]*connection
	failed      []*connection // in the order of their failing; some have been asked for meanwhile
	dialling    int
	toward      map[netip.AddrPort]int // of those, by destination
	limit       int                    // of those
	tunnels     int                    // that have been handed on and not ended
	room        int                    // for both
	stopped     bool
	known       atomic.Int32
}

func (n *network) prepare(s *Server) {
	n.server, n.patience = s, joinLimit
	n.limit, n.room = shareOfFiles(maxDialling, diallingShare), shareOfFiles(maxTunnels, tunnelShare)
	n.connections, n.toward = map[uint64]*connection{}, map[netip.AddrPort]int{}
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
	n.spares.kill()
}

// finish waits until nothing of the network is left. The workers have ended.
func (n *network) finish() {
	n.stop()
	n.goroutines.Wait()
	n.spares.close()
	n.diagnosis.close()
	n.arrivals.close()
	n.poller.close()
}

// connect is connect(2) on a program's TCP socket, of which fd is a copy, without waiting whatever the socket's mode is: what
// is not done at once goes on, and is EINPROGRESS or EALREADY.
func (n *network) connect(fd int, address []byte) syscall.Errno {
	errno := socket.Begin(fd, address)
	if errno == unix.EOPNOTSUPP {
		return n.connectWaiting(fd, address)
	}
	return errno
}

// connectNow is connect for what can be done at once: on loopback the other end has answered before the call returns, and
// what is left is to say so. EINPROGRESS and EALREADY say that it has not.
func (n *network) connectNow(fd int, address []byte) syscall.Errno {
	first := n.connect(fd, address)
	if first != unix.EINPROGRESS {
		return first
	}
	if errno := n.connect(fd, address); errno != unix.EALREADY {
		return errno
	}
	return first
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
	case n.dialling >= n.limit, n.dialling+n.tunnels >= n.room:
		return unix.EAGAIN
	case n.toward[x.to] >= max(1, n.limit/2): // so that one that does not answer leaves others reachable
		return unix.EAGAIN
	}
	n.dialling++
	n.toward[x.to]++
	n.goroutines.Add(1)
	n.connections[x.cookie] = x
	n.known.Store(int32(len(n.connections)))
	return 0
}

// dialled takes a connection off those that are dialled for.
func (n *network) dialled(x *connection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialling--
	if n.toward[x.to]--; n.toward[x.to] <= 0 {
		delete(n.toward, x.to)
	}
}

// tunnel counts a connection that has been handed on (1), or has ended (-1).
func (n *network) tunnel(by int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tunnels += by
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
