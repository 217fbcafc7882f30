package hostile

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer is the one that the host asks. It remembers every name that it was asked for.
type nameServer struct {
	mu    sync.Mutex
	asked map[string]int
	flips int
}

// serveNames starts the name server. It lasts as long as the process.
func (w *world) serveNames() (*nameServer, error) {
	n := &nameServer{asked: map[string]int{}}
	var udp net.PacketConn
	var tcp net.Listener
	var err, err2 error
	w.in(func() {
		udp, err = net.ListenPacket("udp", serverNet+":53")
		tcp, err2 = net.Listen("tcp", ":53")
	})
	if err != nil {
		return nil, err
	}
	if err2 != nil {
		return nil, err2
	}
	go n.serveUDP(udp)
	go n.serveTCP(tcp)
	return n, nil
}

func (n *nameServer) serveUDP(udp net.PacketConn) {
	buf := make([]byte, 1<<16)
	for {
		size, from, err := udp.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply := n.answer(buf[:size]); reply != nil {
			_, _ = udp.WriteTo(reply, from) // who asked asks again
		}
	}
}

func (n *nameServer) serveTCP(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			for {
				var size [2]byte
				if _, err := io.ReadFull(c, size[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(c, query); err != nil {
					return
				}
				reply := n.answer(query)
				if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
					return
				}
			}
		}()
	}
}

// zone is what the name server knows. Every other name is a good one's alias: it exists, wherever it is asked for.
var zone = map[string][]string{
	goodName + ".":      {good, good6},
	"bad.test.":         {bad},
	"loop.test.":        {"127.0.0.1", "::1"},
	"mapped.test.":      {"::ffff:127.0.0.1"},
	"sixtofour.test.":   {"2002:7f00:1::"},
	"nat.test.":         {"64:ff9b::7f00:1"},
	"meta.test.":        {"169.254.169.254"},
	"unspecified.test.": {"0.0.0.0", "::"},
	"own.test.":         {"10.203.255.1"},
	"listed.test.":      {bad},
}

// flipping names a host whose address is a good one and the host's loopback in turn: each answer is another.
const flipping = "flip.test."

func (n *nameServer) answer(query []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	name := strings.ToLower(q.Name.String())
	n.mu.Lock()
	n.asked[name]++
	addresses, known := zone[name]
	switch {
	case name == flipping && q.Type == dnsmessage.TypeA:
		addresses = []string{[]string{good, "127.0.0.1", bad}[n.flips%3]}
		n.flips++
	case !known:
		addresses = []string{good}
	}
	n.mu.Unlock()
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	head := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 0}
	for _, text := range addresses {
		a := netip.MustParseAddr(text)
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}

// take gives the names that were asked for since it was last called.
func (n *nameServer) take() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	asked := n.asked
	n.asked = map[string]int{}
	return asked
}
