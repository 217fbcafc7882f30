package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// Who listens in the sandbox is a question for the kernel's own lookup (sock_diag(7)): its list of all sockets in /proc takes
// milliseconds, since it goes through those of all other networks as well. The netlink socket is made in the sandbox, whose
// network it then asks about.

// diagnosis asks the kernel who listens. Its zero value is ready for use.
type diagnosis struct {
	mu   sync.Mutex // held by nobody who waits for a program
	fd   int        // of the netlink socket, 0 until needed
	none bool       // the kernel has no such thing
	seq  uint32
}

// Sizes and offsets of struct inet_diag_req_v2 and inet_diag_msg behind struct nlmsghdr (linux/inet_diag.h).
const (
	diagByFamily = 20
	diagRequest  = unix.SizeofNlMsghdr + 56
	diagState    = unix.SizeofNlMsghdr + 1
	diagAnswer   = 512 // more than one without extensions has
	loopbackLink = 1   // lo is always the first interface of a network namespace
)

// errDiag says that the kernel's answer is not understood.
var errDiag = errors.New("an answer about a socket (sock_diag) is not understood")

// listens tells whether something listens at an address of lo. known is false where this cannot be found out so.
func (d *diagnosis) listens(spares *spares, at netip.AddrPort) (yes, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.none {
		return false, false
	}
	if d.fd == 0 {
		fd, err := spares.netlink()
		if err != nil {
			return false, false // what is the matter with the hand will be said of the next socket
		}
		d.fd = fd
	}
	d.seq++
	yes, err := askListens(d.fd, d.seq, at)
	d.none = err != nil
	return yes, err == nil
}

func (d *diagnosis) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fd > 0 {
		unix.Close(d.fd)
		d.fd, d.none = 0, true
	}
}

// askListens asks with one request. The kernel has answered when it is sent.
func askListens(fd int, seq uint32, at netip.AddrPort) (bool, error) {
	if err := unix.Sendto(fd, diagRequestFor(seq, at), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, err
	}
	for {
		answer := make([]byte, diagAnswer)
		n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT)
		if err != nil {
			return false, err
		}
		yes, mine, err := parseDiag(answer[:max(n, 0)], seq)
		if err != nil || mine {
			return yes, err
		}
	}
}

// diagRequestFor asks for the socket that a connection to at would come to, from a port that nobody has.
func diagRequestFor(seq uint32, at netip.AddrPort) []byte {
	b := make([]byte, diagRequest)
	binary.NativeEndian.PutUint32(b, diagRequest)
	binary.NativeEndian.PutUint16(b[4:], diagByFamily)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(b[8:], seq)
	r := b[unix.SizeofNlMsghdr:]
	r[0], r[1] = unix.AF_INET, unix.IPPROTO_TCP
	if at.Addr().Is6() {
		r[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(r[4:], 1<<unix.BPF_TCP_LISTEN)
	binary.BigEndian.PutUint16(r[8:], at.Port())
	copy(r[12:28], at.Addr().AsSlice())
	copy(r[28:44], at.Addr().AsSlice())
	binary.NativeEndian.PutUint32(r[44:], loopbackLink)
	binary.NativeEndian.PutUint64(r[48:], 1<<64-1) // INET_DIAG_NOCOOKIE
	return b
}

// parseDiag reads an answer. mine is false for one to an earlier request.
func parseDiag(b []byte, seq uint32) (yes, mine bool, err error) {
	if len(b) < unix.SizeofNlMsghdr+4 {
		return false, false, errDiag
	}
	if binary.NativeEndian.Uint32(b[8:]) != seq {
		return false, false, nil
	}
	switch binary.NativeEndian.Uint16(b[4:]) {
	case diagByFamily:
		return b[diagState] == unix.BPF_TCP_LISTEN, true, nil
	case unix.NLMSG_ERROR:
		errno := unix.Errno(-int32(binary.NativeEndian.Uint32(b[unix.SizeofNlMsghdr:])))
		if errno == unix.ENOENT {
			return false, true, nil
		}
		return false, true, fmt.Errorf("ask for a socket (sock_diag): %w", errno)
	}
	return false, true, errDiag
}

// netlink has the hand make a netlink socket, which is the caller's.
func (p *spares) netlink() (int, error) {
	p.making.Lock()
	defer p.making.Unlock()
	hand, err := p.getHand()
	if err != nil {
		return -1, err
	}
	program := hand.Program()
	made := program.Call("make", "a netlink socket", unix.SYS_SOCKET, ns.Int(unix.AF_NETLINK), ns.Int(unix.SOCK_RAW|unix.SOCK_CLOEXEC), ns.Int(unix.NETLINK_SOCK_DIAG))
	program.SendFiles(0, "the netlink socket", made)
	r, err := hand.Do()
	if err == nil {
		err = r.Err()
	} else {
		p.dropHand() // it is of no more use
	}
	defer r.Close()
	switch {
	case err != nil:
		return -1, err
	case len(r.Files) == 0 || r.Files[0] == nil:
		return -1, errSpare
	}
	return unix.FcntlInt(r.Files[0].Fd(), unix.F_DUPFD_CLOEXEC, 3)
}
