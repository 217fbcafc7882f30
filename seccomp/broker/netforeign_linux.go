package broker

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// A program can have sockets of other networks than the sandbox's: of a network namespace that it has made itself
// (allowNestedUserNamespaces), and of the host's, if a server of the host that it may connect to hands it one. The first
// leads nowhere but where the program has made a way to, and the kernel connects it. The second leads anywhere, so that
// nothing connects it.

// home is the network that a socket is of.
type home uint8

const (
	ofHost    home = iota // the host's network, or one that is not known
	inSandbox             // the sandbox's own
	nested                // one that was made in the sandbox
)

// netnsCookie is SO_NETNS_COOKIE, of Linux 5.14 (include/uapi/asm-generic/socket.h).
const netnsCookie = 71

// homeOf tells what network a socket is of, of which fd is a copy.
func (n *network) homeOf(fd int) (home, error) {
	own, err := n.ownNetwork()
	if err != nil {
		return ofHost, err
	}
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, netnsCookie)
	switch {
	case err == nil && own.cookie != 0:
		if cookie == own.cookie {
			return inSandbox, nil
		}
	case err != nil && !errors.Is(err, unix.ENOPROTOOPT):
		return ofHost, fmt.Errorf("ask for a socket's network namespace (SO_NETNS_COOKIE): %w", err)
	}
	network, owner, err := namespacesOf(fd)
	if err != nil {
		return ofHost, nil //nolint:nilerr // it is not ours to ask about (EPERM): so the sandbox has not made it
	}
	defer unix.Close(owner)
	switch {
	case network == own.network:
		return inSandbox, nil
	case own.host:
		return ofHost, nil
	}
	return descends(owner, own.owner)
}

// ownNetwork is what is known of the sandbox's network namespace.
type ownNetwork struct {
	cookie         uint64 // 0 on older kernels
	network, owner nodeID
	host           bool // its user namespace is this process's, so that nothing can be told from it
}

// nodeID is a file, by its device and number: two descriptors of one namespace have the same (namespaces(7)).
type nodeID struct{ dev, ino uint64 }

func nodeOf(fd int) (nodeID, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return nodeID{st.Dev, st.Ino}, err
}

// ownNetwork finds it out once: of the capturing listener.
func (n *network) ownNetwork() (*ownNetwork, error) {
	if own := n.own.Load(); own != nil {
		return own, nil
	}
	fd, err := n.captureFD()
	if err != nil {
		return nil, err
	}
	own, err := inspectNetwork(fd)
	if err != nil {
		return nil, fmt.Errorf("ask for the sandbox's network namespace: %w", err)
	}
	n.own.Store(own)
	return own, nil
}

func inspectNetwork(fd int) (*ownNetwork, error) {
	own := &ownNetwork{}
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, netnsCookie)
	if err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
		return nil, err
	}
	own.cookie = cookie
	network, owner, err := namespacesOf(fd)
	if err != nil {
		return nil, err
	}
	defer unix.Close(owner)
	own.network = network
	if own.owner, err = nodeOf(owner); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/user", &st); err != nil {
		return nil, err
	}
	own.host = own.owner == nodeID{st.Dev, st.Ino}
	return own, nil
}

// namespacesOf gives the network namespace of a socket and a descriptor of the user namespace that owns that (SIOCGSKNS,
// ioctl_nsfs(2)). It takes rights over the first (EPERM).
func namespacesOf(fd int) (network nodeID, owner int, err error) {
	ns, err := unix.IoctlRetInt(fd, unix.SIOCGSKNS)
	if err != nil {
		return network, -1, err
	}
	defer unix.Close(ns)
	if network, err = nodeOf(ns); err != nil {
		return network, -1, err
	}
	owner, err = unix.IoctlRetInt(ns, unix.NS_GET_USERNS)
	return network, owner, err
}

// descends tells whether a user namespace is another one or was made in it. It keeps nothing of fd.
func descends(fd int, from nodeID) (home, error) {
	current, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	for err == nil {
		at, failure := nodeOf(current)
		if failure != nil || at == from {
			unix.Close(current)
			if failure == nil {
				return nested, nil
			}
			return ofHost, failure
		}
		parent, failure := unix.IoctlRetInt(current, unix.NS_GET_PARENT)
		unix.Close(current)
		if failure != nil {
			return ofHost, nil //nolint:nilerr // EPERM: this process's own, or the first of all
		}
		current = parent
	}
	return ofHost, err
}
