package broker

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// errNoConfined says that a call came that only seccomp.ConfinedNetwork puts here.
var errNoConfined = errors.New("nothing was said about the network of a sandbox without a namespace for it")

// confinedNetwork is what a Server knows of the listeners of a confined command. A listener is known by the number of its
// socket, which the kernel gives to another only after four billion.
type confinedNetwork struct {
	// mu is held while a listener is made, and while a connection is dissolved, so that what is judged as bound to loopback is
	// still bound when it listens.
	mu sync.Mutex

	known     sync.Mutex
	listeners map[uint64]struct{}
}

// maxListeners is how many are remembered. Those that are closed make room.
const maxListeners = 4096

// listener remembers a socket that is about to listen. It is false when there are too many.
func (n *confinedNetwork) listener(fd int) bool {
	inode, err := inodeOf(fd)
	if err != nil {
		return false
	}
	n.known.Lock()
	defer n.known.Unlock()
	if n.listeners == nil {
		n.listeners = map[uint64]struct{}{}
	}
	if len(n.listeners) >= maxListeners {
		n.forgetClosed()
	}
	if len(n.listeners) >= maxListeners {
		return false
	}
	n.listeners[inode] = struct{}{}
	return true
}

// forgetClosed drops those that listen no more. On a failure it drops none.
func (n *confinedNetwork) forgetClosed() {
	open := map[uint64]struct{}{}
	err := hostListeners(func(l hostListener) {
		if _, ok := n.listeners[l.inode]; ok {
			open[l.inode] = struct{}{}
		}
	})
	if err == nil {
		n.listeners = open
	}
}

func inodeOf(fd int) (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Ino, err
}

// owns tells at which address a listener of the sandbox's own takes connections to a loopback destination. ECONNREFUSED: none
// does, or one of the host's does as well.
func (n *confinedNetwork) owns(t *target) (at netip.AddrPort, errno syscall.Errno) {
	if !t.c.s.config.Confined.LocalBinding {
		return at, unix.ECONNREFUSED
	}
	var exact, mapped finding
	err := hostListeners(func(l hostListener) {
		switch {
		case l.at.Port() != t.to.Port():
		case l.at.Addr().Unmap() == t.to.Addr():
			n.found(&exact, l)
		case l.at.Addr().Is4In6() && l.at.Addr().Unmap() == loopback4:
			n.found(&mapped, l)
		}
	})
	switch {
	case err != nil:
		return at, t.c.broken(err)
	case exact.own && !exact.foreign:
		return t.spelled(t.to), 0
	case !exact.own && !exact.foreign && t.to.Addr() == netip.IPv6Loopback() && mapped.own && !mapped.foreign && t.takesIPv4():
		// It was bound to :: (narrow).
		return netip.AddrPortFrom(netip.AddrFrom16(loopback4.As16()), t.to.Port()), 0
	}
	return at, unix.ECONNREFUSED
}

// finding is whose listeners there are at an address.
type finding struct{ own, foreign bool }

func (n *confinedNetwork) found(f *finding, l hostListener) {
	n.known.Lock()
	_, own := n.listeners[l.inode]
	n.known.Unlock()
	f.own, f.foreign = f.own || own, f.foreign || !own
}

// spelled is a loopback address as the socket's family has it.
func (t *target) spelled(a netip.AddrPort) netip.AddrPort {
	if t.domain == unix.AF_INET6 && a.Addr().Is4() {
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
	}
	return a
}

// takesIPv4 tells whether a socket of AF_INET6 can be connected to an IPv4 address (IPV6_V6ONLY, ipv6(7)).
func (t *target) takesIPv4() bool {
	only, err := unix.GetsockoptInt(t.socket, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY)
	return err == nil && only == 0
}

// hostListener is a listener in this process's network namespace.
type hostListener struct {
	at    netip.AddrPort // an IPv4-mapped address as it is
	inode uint64
}

// hostListeners calls visit for each (proc_pid_net(5)).
func hostListeners(visit func(hostListener)) error {
	for _, name := range [...]string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
		f, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) && name[len(name)-1] == '6' {
			continue // a kernel without IPv6
		}
		if err == nil {
			err = eachListener(f, visit)
			f.Close()
		}
		if err != nil {
			return fmt.Errorf("look for listeners (%s): %w", name, err)
		}
	}
	return nil
}

// eachListener reads the text of a list of sockets, in which the listeners come first.
func eachListener(text io.Reader, visit func(hostListener)) error {
	lines := bufio.NewScanner(text)
	lines.Scan() // the heading
	for lines.Scan() {
		f := bytes.Fields(lines.Bytes())
		const local, state, inode = 1, 3, 9
		if len(f) <= inode {
			return errSockets
		}
		if string(f[state]) != "0A" { // TCP_LISTEN
			break
		}
		at, err := parseSocket(f[local])
		if err != nil {
			return err
		}
		number, err := strconv.ParseUint(string(f[inode]), 10, 64)
		if err != nil {
			return errSockets
		}
		visit(hostListener{at, number})
	}
	return lines.Err()
}

// listenUnix makes a listener of AF_UNIX: with the caller's ids, which its clients are told (SO_PEERCRED, unix(7)). The process
// that they are told is the hand.
func (c *call) listenUnix(copied int, backlog int32) outcome {
	another, errno := c.underOtherIDs()
	if errno != 0 {
		return failed(errno)
	}
	p, errno := c.unixProgram(another)
	if errno != 0 {
		return failed(errno)
	}
	step := p.Call("listen on", "a socket", unix.SYS_LISTEN, p.hand.PassFD(copied).Arg(), ns.Int(backlog))
	p.Tolerate(unix.EINVAL)
	if another {
		p.takeBack()
	}
	r, errno := p.do()
	switch {
	case errno != 0:
		return failed(errno)
	case r.Failed >= 0:
		return failed(r.Errno)
	}
	if _, done := r.Value(step); !done {
		return failed(r.Tolerated(step))
	}
	return outcome{}
}

func errnoIn(err error) syscall.Errno {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return unix.EIO
}

// boundConfined opens the socket file that has just been made in a directory. Nothing of the command's can have come to its name
// meanwhile: whatever it changes is performed by this Server, which holds moving.
func (c *call) boundConfined(dir origin, address []byte) (int, error) {
	name, ok := unixName(address)
	p, errno := c.program(false)
	if !ok || errno != 0 {
		return -1, errors.Join(errNoFile, errno)
	}
	at := p.openat2(name, p.from(dir), name, openHow{flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	p.SendFiles(0, name, at)
	r, errno := p.do()
	if errno != 0 {
		return -1, errno
	}
	fds := c.own(&r, 1)
	if r.Failed >= 0 {
		return -1, r.Err()
	}
	i, errno := c.look(fds[0])
	switch {
	case errno != 0:
		return -1, errno
	case i.kind() != unix.S_IFSOCK || i.Nlink != 1:
		return -1, errNoFile
	}
	return unix.FcntlInt(uintptr(fds[0]), unix.F_DUPFD_CLOEXEC, 0)
}

// errNoFile says that the file is not there that a socket was bound to.
var errNoFile = errors.New("the file of the socket is not where it was made")
