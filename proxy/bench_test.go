package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// Each benchmark runs the same two ends with and without the proxy between them: what counts is the ratio.

var benchRules = policy.NetworkRules{AllowedDomains: []string{"127.0.0.1", "name.test"}}

// benchDial returns a function that connects to a server directly or by a tunnel.
func benchDial(b *testing.B, port int, through string) func() net.Conn {
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	dial := func(addr string) net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	if through == "direct" {
		return func() net.Conn { return dial(addr) }
	}
	h := start(b, benchRules)
	request := "CONNECT " + addr + " HTTP/1.1\r\n" + auth + "\r\n"
	return func() net.Conn {
		c := dial(h.addr)
		if _, err := io.WriteString(c, request); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, len(established))); err != nil {
			b.Fatal(err)
		}
		return c
	}
}

func compared(b *testing.B, f func(b *testing.B, through string)) {
	for _, through := range []string{"direct", "proxy"} {
		b.Run(through, func(b *testing.B) { f(b, through) })
	}
}

// BenchmarkTunnelThroughput moves 1 MiB for each iteration from client to server.
func BenchmarkTunnelThroughput(b *testing.B) {
	compared(b, func(b *testing.B, through string) {
		const size = 1 << 20
		done := make(chan struct{})
		port := serveEach(b, func(c *net.TCPConn) {
			buf := make([]byte, 256<<10)
			for {
				if _, err := c.Read(buf); err != nil {
					close(done)
					return
				}
			}
		}).Port
		c := benchDial(b, port, through)()
		buf := make([]byte, size)
		b.SetBytes(size)
		for b.Loop() {
			if _, err := c.Write(buf); err != nil {
				b.Fatal(err)
			}
		}
		c.Close()
		<-done
	})
}

// BenchmarkTunnelLatency sends one byte there and back in an open tunnel.
func BenchmarkTunnelLatency(b *testing.B) {
	compared(b, func(b *testing.B, through string) {
		_, port := echo(b)
		c := benchDial(b, port, through)()
		defer c.Close()
		buf := make([]byte, 1)
		for b.Loop() {
			if _, err := c.Write(buf); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(c, buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkTunnelSetup opens a connection, sends one byte there and back, and closes it.
func BenchmarkTunnelSetup(b *testing.B) {
	compared(b, func(b *testing.B, through string) {
		_, port := echo(b)
		dial := benchDial(b, port, through)
		buf := make([]byte, 1)
		for b.Loop() {
			c := dial()
			if _, err := c.Write(buf); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(c, buf); err != nil {
				b.Fatal(err)
			}
			c.Close()
		}
	})
}

// benchGet sends a request and reads a response of known length.
func benchGet(b *testing.B, c net.Conn, request string, buf []byte) {
	if _, err := io.WriteString(c, request); err != nil {
		b.Error(err)
	}
	if _, err := io.ReadFull(c, buf); err != nil {
		b.Error(err)
	}
}

// benchServer answers every head with the same response.
func benchServer(b *testing.B, response string) (port int) {
	return serveEach(b, func(c *net.TCPConn) {
		br := bufio.NewReader(c)
		var head []byte
		for {
			var err error
			if head, err = httphead.ReadHead(br, head[:0]); err != nil {
				return
			}
			if _, err := io.WriteString(c, response); err != nil {
				return
			}
		}
	}).Port
}

// BenchmarkPlainGET fetches 100 bytes: one client on one connection, 16 clients at once, and a connection for each.
func BenchmarkPlainGET(b *testing.B) {
	response := "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 100)
	port := benchServer(b, response)
	h := start(b, benchRules)
	addr := map[string]string{"direct": fmt.Sprintf("127.0.0.1:%d", port), "proxy": h.addr}
	request := map[string]string{
		"direct": "GET /x HTTP/1.1\r\nHost: a\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n",
		"proxy":  fmt.Sprintf("GET http://127.0.0.1:%d/x HTTP/1.1\r\nHost: a\r\nUser-Agent: bench\r\nAccept: */*\r\n%s\r\n", port, auth),
	}
	dial := func(b *testing.B, through string) net.Conn {
		c, err := net.Dial("tcp", addr[through])
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	b.Run("keepalive", func(b *testing.B) {
		compared(b, func(b *testing.B, through string) {
			c := dial(b, through)
			defer c.Close()
			buf := make([]byte, len(response))
			for b.Loop() {
				benchGet(b, c, request[through], buf)
			}
		})
	})
	b.Run("parallel16", func(b *testing.B) {
		compared(b, func(b *testing.B, through string) {
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				c := dial(b, through)
				defer c.Close()
				buf := make([]byte, len(response))
				for pb.Next() {
					benchGet(b, c, request[through], buf)
				}
			})
		})
	})
	b.Run("connection", func(b *testing.B) {
		compared(b, func(b *testing.B, through string) {
			buf := make([]byte, len(response))
			for b.Loop() {
				c := dial(b, through)
				benchGet(b, c, request[through], buf)
				c.Close()
			}
		})
	})
}
