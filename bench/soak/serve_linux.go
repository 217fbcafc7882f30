package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// serve is the far end: an echo server and a web server, until standard input ends.
func serve([]string) error {
	ip, err := ownAddress()
	if err != nil {
		return err
	}
	raw, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return err
	}
	web, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return err
	}
	go echoServer(localOnly{raw, ip})
	go http.Serve(localOnly{web, ip}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "ok") // a client that has gone is its own business
	}))
	fmt.Println(raw.Addr(), web.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func echoServer(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if _, err := io.Copy(c, c); err == nil {
				_ = c.(*net.TCPConn).CloseWrite() // the client may have gone
			}
		}()
	}
}

// localOnly drops connections that come from another host.
type localOnly struct {
	net.Listener
	ip string
}

func (l localOnly) Accept() (net.Conn, error) {
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

// ownAddress returns an IPv4 address of this host that is not loopback: traffic to it does not leave the host.
func ownAddress() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", fmt.Errorf("this host has no IPv4 address but loopback")
}
