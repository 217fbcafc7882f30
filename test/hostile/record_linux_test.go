package hostile

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// packet is one that arrived. Of TCP only those that begin a connection are recorded.
type packet struct {
	where    string // the interface
	protocol byte   // of IP; 255 for a frame that is no IP
	dst      netip.AddrPort
	data     []byte // what follows the IP header
}

func (p packet) String() string {
	text := fmt.Sprintf("%s: protocol %d to %v", p.where, p.protocol, p.dst)
	if p.protocol == unix.IPPROTO_UDP {
		text += fmt.Sprintf(" %.80q", p.data)
	}
	return text
}

// recorder records the packets that arrive at some interfaces.
type recorder struct {
	mu      sync.Mutex
	packets []packet
	fault   error
	lost    []func() (uint32, error)
	marks   chan string
	sinks   []net.PacketConn
}

// markPort is the UDP port to which the recorder sends packets of its own.
const markPort = 9

// record begins to record: at the servers' end of the pair of interfaces, and on the host's loopback.
func (w *world) record() error {
	w.seen.marks = make(chan string, 16)
	var err error
	w.in(func() { err = errors.Join(w.seen.sink(), w.seen.listen("srt-net")) })
	return errors.Join(err, w.seen.sink(), w.seen.listen("lo"))
}

// sink takes the recorder's own packets. Without it each would be answered with an error, which is a packet too.
func (r *recorder) sink() error {
	c, err := net.ListenPacket("udp", fmt.Sprintf(":%d", markPort))
	r.sinks = append(r.sinks, c)
	return err
}

// beginning is a program for packets (SO_ATTACH_FILTER): of TCP those that begin a connection, and everything else.
var beginning = []unix.SockFilter{
	{Code: 0x30, K: 0},                  // the first byte: version and header length
	{Code: 0x54, K: 0xf0},               //
	{Code: 0x15, Jt: 0, Jf: 6, K: 0x40}, // IPv4
	{Code: 0x30, K: 9},                  //   protocol
	{Code: 0x15, Jt: 0, Jf: 9, K: 6},    //   TCP
	{Code: 0xb1, K: 0},                  //   X = header length
	{Code: 0x50, K: 13},                 //   flags
	{Code: 0x54, K: 0x12},               //
	{Code: 0x15, Jt: 5, Jf: 6, K: 0x02}, //   SYN and no ACK
	{Code: 0x30, K: 6},                  // IPv6: next header
	{Code: 0x15, Jt: 0, Jf: 3, K: 6},    //   TCP
	{Code: 0x30, K: 53},                 //   flags
	{Code: 0x54, K: 0x12},               //
	{Code: 0x15, Jt: 0, Jf: 1, K: 0x02}, //   SYN and no ACK
	{Code: 0x06, K: 0xffff},             // take it
	{Code: 0x06, K: 0},                  // leave it
}

func (r *recorder) listen(name string) error {
	everything := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("record packets: %w", err)
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(beginning)), Filter: &beginning[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog); err != nil {
		return fmt.Errorf("record packets: %w", err)
	}
	const room = 64 << 20
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, room) // as much as may be
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: i.Index}); err != nil {
		return fmt.Errorf("record packets: %w", err)
	}
	r.lost = append(r.lost, func() (uint32, error) {
		stats, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
		if err != nil {
			return 0, err
		}
		return stats.Drops, nil
	})
	go r.read(name, fd)
	return nil
}

// read records until the process ends.
func (r *recorder) read(name string, fd int) {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := unix.Recvfrom(fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			r.mu.Lock()
			r.fault = err
			r.mu.Unlock()
			return
		}
		link, ok := from.(*unix.SockaddrLinklayer)
		if ok && link.Pkttype == unix.PACKET_OUTGOING {
			continue // lo has each packet twice
		}
		if ok && link.Protocol == binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ARP)) {
			continue
		}
		p, ok := parse(name, buf[:n])
		switch {
		case !ok:
		case p.dst.Port() == markPort && p.protocol == unix.IPPROTO_UDP && strings.HasPrefix(string(p.data), markPrefix):
			r.marks <- string(p.data)
		default:
			r.mu.Lock()
			r.packets = append(r.packets, p)
			r.mu.Unlock()
		}
	}
}

// parse reads the head of a packet. ok is false for what neighbours say to find each other.
func parse(name string, b []byte) (p packet, ok bool) {
	p = packet{where: name, protocol: 255}
	switch {
	case len(b) >= 20 && b[0]>>4 == 4 && len(b) >= int(b[0]&15)*4:
		p.protocol, p.data = b[9], b[int(b[0]&15)*4:]
		p.dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[16:20])), 0)
	case len(b) >= 40 && b[0]>>4 == 6:
		p.protocol, p.data = b[6], b[40:]
		p.dst = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[24:40])), 0)
		const hopByHop = 0
		if p.protocol == hopByHop || p.protocol == unix.IPPROTO_ICMPV6 && len(p.data) > 0 && p.data[0] >= 130 {
			return p, false // multicast listeners, routers and neighbours
		}
	}
	if (p.protocol == unix.IPPROTO_TCP || p.protocol == unix.IPPROTO_UDP) && len(p.data) >= 8 {
		p.dst = netip.AddrPortFrom(p.dst.Addr(), binary.BigEndian.Uint16(p.data[2:]))
		if p.protocol == unix.IPPROTO_UDP {
			p.data = p.data[8:]
		}
	}
	p.data = append([]byte(nil), p.data...)
	return p, true
}

const markPrefix = "mark "

// take gives what has arrived since it was last called, all of it.
func (r *recorder) take() ([]packet, error) {
	for _, to := range []string{serverNet, "127.0.0.1"} {
		if err := r.flush(fmt.Sprintf("%s:%d", to, markPort)); err != nil {
			return nil, err
		}
	}
	for _, lost := range r.lost {
		n, err := lost()
		if err != nil || n > 0 {
			return nil, fmt.Errorf("%d packets went unrecorded: %w", n, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.packets
	r.packets = nil
	return all, r.fault
}

// flush waits until a packet that is sent now has been recorded.
func (r *recorder) flush(to string) error {
	c, err := net.Dial("udp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	text := markPrefix + rand.Text()
	late := time.After(stage.Patience)
	for {
		_, err := c.Write([]byte(text))
		if err != nil && !errors.Is(err, unix.ECONNREFUSED) {
			return err
		}
		select {
		case got := <-r.marks:
			if got == text {
				return nil
			}
		case <-time.After(100 * time.Millisecond):
		case <-late:
			return os.ErrDeadlineExceeded
		}
	}
}
