package local

import (
	"errors"
	"net"
)

// Only gives a listener on ip that drops connections which come from another host: from neither loopback nor ip. It takes over l.
func Only(l net.Listener, ip string) net.Listener { return only{l, ip} }

type only struct {
	net.Listener
	ip string
}

// Accept implements net.Listener.
func (l only) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if from, ok := c.RemoteAddr().(*net.TCPAddr); ok && (from.IP.IsLoopback() || from.IP.String() == l.ip) {
			return c, nil
		}
		c.Close()
	}
}

// Address returns an IPv4 address of this host that is not loopback: what a program without proxies connects to, because
// loopback stays inside a sandbox. Traffic to it does not leave the host.
func Address() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", errors.New("this host has no IPv4 address but loopback")
}
