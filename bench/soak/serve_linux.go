package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/srt-sandbox/srt/bench/internal/local"
)

// listeners is how many ports the echo server has: one would run out of ports to connect from, which TIME-WAIT keeps for a minute.
const listeners = 32

// serve is the far end: an echo server and a web server, until standard input ends.
func serve([]string) error {
	ip, err := local.Address()
	if err != nil {
		return err
	}
	ports := make([]string, listeners)
	for i := range ports {
		raw, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
		if err != nil {
			return err
		}
		_, ports[i], _ = net.SplitHostPort(raw.Addr().String()) // it has both
		go echoServer(local.Only(raw, ip))
	}
	web, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return err
	}
	go http.Serve(local.Only(web, ip), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "ok") // a client that has gone is its own business
	}))
	fmt.Println(net.JoinHostPort(ip, strings.Join(ports, ",")), web.Addr())
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
