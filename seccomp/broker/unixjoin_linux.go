package broker

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// unixPeer is what is to be connected to what.
type unixPeer struct {
	socket  int          // a copy of the caller's
	object  int          // O_PATH descriptor of the peer's file; -1 for an address without one
	address []byte       // with object -1
	id      unixIdentity // of the object
	kind    int          // SOCK_STREAM, SOCK_SEQPACKET or SOCK_DGRAM
}

// unixKey is the same for those who are to be connected to the same peer.
type unixKey struct {
	file      unixIdentity
	name      string // an abstract one
	namespace uint64 // SO_NETNS_COOKIE of what has it
	alone     uint64 // the call that waits for nobody else
}

func (u *unixPeer) key() unixKey {
	if u.object >= 0 {
		return unixKey{file: u.id}
	}
	namespace, err := unix.GetsockoptUint64(u.socket, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		namespace = 0 // an older kernel
	}
	return unixKey{name: string(u.address), namespace: namespace}
}

// expected are the errors that a program for the connect lets pass: whatever else can be said of it is known before. A
// datagram socket waits for nobody, but may be refused by one that is connected to another (unix(7)).
func (u *unixPeer) expected() [3]syscall.Errno {
	if u.kind == unix.SOCK_DGRAM {
		return [...]syscall.Errno{unix.EPERM, unix.ECONNREFUSED, unix.EPROTOTYPE}
	}
	return [...]syscall.Errno{unix.EAGAIN, unix.ECONNREFUSED, unix.EPROTOTYPE}
}

// tryUnix has the hand connect the socket, without waiting for longer than the socket's SO_SNDTIMEO says. stuck says that
// it took far longer and was broken off (EAGAIN), and the hand with it.
func (c *call) tryUnix(u *unixPeer) (errno syscall.Errno, stuck bool) {
	another, errno := c.underOtherIDs()
	if errno != 0 {
		return errno, false
	}
	if another {
		if errno := u.state(); errno != 0 {
			return errno, false
		}
	}
	p, errno := c.unixProgram(another)
	if errno != 0 {
		return errno, false
	}
	socket := p.hand.PassFD(u.socket)
	address := u.address
	if u.object >= 0 {
		p.hand.PassFD(u.object)
		address = unixAddress(strconv.Itoa(ns.HandFirst + 1)) // the second descriptor that is passed
		p.Call("enter", "the directory of descriptors", unix.SYS_FCHDIR, ns.Int(ns.HandFDs))
	}
	step := p.Len()
	connected := p.Call("connect", c.text, unix.SYS_CONNECT, socket.Arg(), p.Bytes(address), ns.Int(len(address)))
	expected := u.expected()
	p.Tolerate(expected[:]...)
	if another {
		p.takeBack()
	}
	if u.object >= 0 {
		p.Call("leave", "the directory of descriptors", unix.SYS_CHDIR, p.Str("/"))
	}
	do := p.doBriefly
	if u.kind == unix.SOCK_DGRAM {
		do = p.doAtOnce
	}
	r, stuck, errno := do()
	switch {
	case stuck:
		return u.brokenOff()
	case errno != 0:
		return errno, false
	}
	_, done := r.Value(connected)
	if done {
		errno = 0 // whatever failed after that
	} else if errno = r.Errno; r.Failed < 0 {
		errno = r.Tolerated(connected)
	} else if r.Failed != step {
		errno = c.broken(fmt.Errorf("connect a socket in the sandbox: %w", r.Err()))
	}
	if r.Failed >= 0 && u.object >= 0 {
		c.leaveDirectory()
	}
	return errno, false
}

// stuckAfter is when a try has taken too long: one that waits for no more than a tick is done by then, unless the machine is
// very busy.
const stuckAfter = 50 * time.Millisecond

// doBriefly is do for a program that is soon done: one that is not, which is stuck then, is ended, with its hand.
func (p *program) doBriefly() (r ns.HandResult, stuck bool, errno syscall.Errno) {
	if !p.c.waits() {
		return r, false, unix.EINTR // nobody is there to see it
	}
	p.c.s.pool.handOn(p.c.w, false)
	killed := make(chan struct{})
	timer := time.AfterFunc(stuckAfter, func() {
		defer close(killed)
		_ = p.hand.Kill() // one that has ended needs no killing
	})
	r, err := p.hand.Do()
	if !timer.Stop() {
		<-killed
		p.c.w.dropHand()
		return r, true, 0
	}
	if err != nil {
		p.c.w.dropHand()
		return r, false, p.c.broken(err)
	}
	return r, false, 0
}

// doAtOnce is do for a program that never waits.
func (p *program) doAtOnce() (r ns.HandResult, stuck bool, errno syscall.Errno) {
	r, errno = p.do()
	return r, false, errno
}

// brokenOff tells what a try came to that was broken off: it may have succeeded just then.
func (u *unixPeer) brokenOff() (errno syscall.Errno, stuck bool) {
	if _, err := unix.Getpeername(u.socket); err == nil {
		return 0, false
	}
	return unix.EAGAIN, true
}

// state says in advance what the kernel would say of a socket that cannot be connected any more: a hand that acts with
// other effective ids does not outlive an error that its program does not expect.
func (u *unixPeer) state() syscall.Errno {
	if listens, err := unix.GetsockoptInt(u.socket, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil && listens != 0 {
		return unix.EINVAL
	}
	if u.kind == unix.SOCK_DGRAM {
		return 0 // it is connected anew
	}
	if _, err := unix.Getpeername(u.socket); err == nil {
		return unix.EISCONN
	}
	return 0
}

// underOtherIDs tells whether the caller's effective ids are not those of the hand.
func (c *call) underOtherIDs() (bool, syscall.Errno) {
	own := c.s.config.Rights
	if own == nil {
		return false, 0
	}
	errno := c.readStatus()
	return errno == 0 && (c.status.uids[1] != own.UID || c.status.gids[1] != own.GID), errno
}

// unixProgram begins a program that connects with the caller's rights and under its effective ids, which the peer is told
// (SO_PEERCRED, unix(7)). If they are others than the hand's own, those are to be taken back in the program itself
// (takeBack): a hand that ends one under other effective ids does not live on.
func (c *call) unixProgram(another bool) (*program, syscall.Errno) {
	if !another {
		return c.program(false)
	}
	hand, err := c.w.getHand()
	if err != nil {
		return nil, c.broken(err)
	}
	if errno := c.limitRights(); errno != 0 {
		return nil, errno
	}
	s, own := &c.status, c.s.config.Rights
	p := &program{Program: hand.Program(), c: c, hand: hand}
	p.ActAs(ns.Identity{UID: s.uids[3], GID: s.gids[3], Groups: s.groups, Effective: own.Effective})
	const op = "act under the ids of the caller"
	p.Call(op, "setresgid", unix.SYS_SETRESGID, keepID, ns.Int(s.gids[1]), keepID)
	p.Call(op, "setresuid", unix.SYS_SETRESUID, keepID, ns.Int(s.uids[1]), keepID)
	// With the effective ids those of file access have changed, and the capabilities.
	p.capabilities(op, own.Effective, own.Effective)
	p.Call(op, "setfsgid", unix.SYS_SETFSGID, ns.Int(s.gids[3]))
	p.Call(op, "setfsuid", unix.SYS_SETFSUID, ns.Int(s.uids[3]))
	p.capabilities(op, own.Effective, ns.Capabilities(s.effective)&own.Effective)
	return p, 0
}

// keepID leaves an id of setresuid(2) as it is.
var keepID = ns.Int(-1)

// takeBack appends that the hand is itself again. Its real ids have remained, and so it may.
func (p *program) takeBack() {
	own := p.c.s.config.Rights
	const op = "act under the hand's own ids again"
	p.Call(op, "setresuid", unix.SYS_SETRESUID, keepID, ns.Int(own.UID), keepID)
	p.Call(op, "setresgid", unix.SYS_SETRESGID, keepID, ns.Int(own.GID), keepID)
}

// capabilities appends capset(2).
func (p *program) capabilities(op string, permitted, effective ns.Capabilities) {
	head := binary.NativeEndian.AppendUint32(nil, unix.LINUX_CAPABILITY_VERSION_3)
	head = binary.NativeEndian.AppendUint32(head, 0) // the hand itself
	var data []byte
	for shift := 0; shift <= 32; shift += 32 {
		for _, set := range [...]ns.Capabilities{effective, permitted, 0} {
			data = binary.NativeEndian.AppendUint32(data, uint32(set>>shift))
		}
	}
	p.Call(op, "capset", unix.SYS_CAPSET, p.Bytes(head), p.Bytes(data))
}
