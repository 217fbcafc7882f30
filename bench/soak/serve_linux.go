package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/srt-sandbox/srt/bench/internal/local"
)

// serve is the far end: an echo server and a web server, until standard input ends.
func serve([]string) error {
	ip, err := local.Address()
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
	go echoServer(local.Only(raw, ip))
	go http.Serve(local.Only(web, ip), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
