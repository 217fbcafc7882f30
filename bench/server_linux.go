package main

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/srt-sandbox/srt/bench/internal/local"
)

// What the first byte of a raw connection asks for.
const (
	askDown = 'D' // send until the client closes
	askUp   = 'U' // read to the end, then answer with the number of bytes, big-endian
	askEcho = 'E' // send back what comes
	askOnce = 'O' // send back one byte and close: the one who closes first is who keeps the port in TIME-WAIT
)

// chunk is the size of reads and writes of a transfer.
const chunk = 256 << 10

// server is the far end of every measurement: a raw listener and an HTTP one, on one address of this host.
type server struct {
	raw, web net.Listener
	http     *http.Server
}

// newServer listens on ephemeral ports of ip. Only connections from this host are served: from ip or from loopback.
func newServer(ip string) (*server, error) {
	raw, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return nil, err
	}
	web, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	raw, web = local.Only(raw, ip), local.Only(web, ip)
	s := &server{raw, web, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "ok") // a client that has gone is its own business
	})}}
	go s.http.Serve(web)
	go s.serve()
	return s, nil
}

func (s *server) close() error { return errors.Join(s.raw.Close(), s.http.Close()) }

func (s *server) serve() {
	for {
		c, err := s.raw.Accept()
		if err != nil {
			return // closed
		}
		go func() {
			defer c.Close()
			answer(c)
		}()
	}
}

// answer serves one raw connection. Its errors are the client's: it has closed.
func answer(c net.Conn) {
	var ask [1]byte
	if _, err := io.ReadFull(c, ask[:]); err != nil {
		return
	}
	switch ask[0] {
	case askDown:
		block := make([]byte, chunk)
		for {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	case askUp:
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, chunk))
		if err == nil {
			c.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
		}
	case askOnce:
		if _, err := io.ReadFull(c, ask[:]); err == nil {
			c.Write(ask[:])
		}
	case askEcho:
		b := make([]byte, 4096)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			if _, err := c.Write(b[:n]); err != nil {
				return
			}
		}
	}
}
