package proxy

import (
	"context"
	"net"
	"net/netip"
)

// forward relays one client to a proxy on the host's loopback (NET-64), on either family: 127.0.0.1 first.
func (s *Server) forward(client net.Conn, hostPort int) {
	if hostPort < 1 || hostPort > 65535 {
		s.release(client)
		return
	}
	loopback := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	ctx, cancel := context.WithTimeout(s.ctx, s.limits.Dial)
	defer cancel()
	upstream, err := s.dialAddrs(ctx, loopback, uint16(hostPort))
	if err != nil {
		s.log.Debug("proxy: the external proxy cannot be reached", "port", hostPort, "error", err)
		s.release(client)
		return
	}
	s.join(client, upstream, nil, nil)
}
