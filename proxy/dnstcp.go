package proxy

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// maxDNSConns is how many TCP connections the stub keeps. One more ends the one that has been silent longest, so that
	// a program which opens connections and says nothing keeps nobody else out.
	maxDNSConns = 64

	// dnsIdle is how long a TCP client may take for its next whole query, and for taking an answer (RFC 7766 6.2.3 asks
	// for seconds). It does not start anew with each byte.
	dnsIdle = 10 * time.Second

	// dnsBufferedQueries is how much of a pipelining client is read at once.
	dnsBufferedQueries = 4096
)

// serveTCP accepts clients (RFC 7766).
func (d *DNS) serveTCP(l net.Listener) error {
	for failures := 0; ; {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed) || d.ctx.Err() != nil:
			return net.ErrClosed
		case err != nil && !temporary(err):
			return err
		case err != nil:
			d.pause(&failures, "dns: accept failed", err)
			continue
		}
		failures = 0
		if !d.track(c) {
			return net.ErrClosed
		}
		client := d.conns.add(c)
		go func() {
			defer d.forget(c)
			defer d.conns.remove(client)
			d.serveConn(client)
		}()
	}
}

// serveConn answers one client's queries in their order until it leaves, is silent for too long, or sends what is no query.
func (d *DNS) serveConn(c *dnsConn) {
	var in queryReader
	in.conn = c.Conn
	out := make([]byte, 2, 2+maxDNSAnswer)
	for {
		if c.SetDeadline(time.Now().Add(d.idle)) != nil {
			return
		}
		query, ok := in.next()
		if !ok {
			return
		}
		reply := d.answer(out, query)
		if len(reply) == len(out) {
			return // nothing that could be answered: the stream is no DNS
		}
		binary.BigEndian.PutUint16(reply, uint16(len(reply)-len(out))) // #nosec G115 -- at most maxDNSAnswer
		if _, err := c.Write(reply); err != nil {
			return
		}
		d.conns.used(c)
	}
}

// queryReader takes queries apart that follow each other on a connection, each after its length in two bytes
// (RFC 1035 4.2.2).
type queryReader struct {
	conn       net.Conn
	buf        [dnsBufferedQueries]byte
	start, end int // of what was read and not returned yet
}

// next returns the next query, valid until the next call; false at the end of input, of patience, or if the length is one
// that no query has.
func (r *queryReader) next() ([]byte, bool) {
	if !r.fill(2) {
		return nil, false
	}
	size := int(binary.BigEndian.Uint16(r.buf[r.start:]))
	if size < dnsHeaderBytes || size > maxDNSQuery || !r.fill(2+size) {
		return nil, false
	}
	query := r.buf[r.start+2 : r.start+2+size]
	r.start += 2 + size
	return query, true
}

// fill reads until n bytes are there, n being less than the buffer's size.
func (r *queryReader) fill(n int) bool {
	if r.start+n > len(r.buf) {
		r.end = copy(r.buf[:], r.buf[r.start:r.end])
		r.start = 0
	}
	for r.end-r.start < n {
		got, err := r.conn.Read(r.buf[r.end:])
		r.end += got
		if err != nil && r.end-r.start < n {
			return false
		}
	}
	return true
}

// dnsConns are the TCP clients of a stub. Its methods may be called from any goroutine.
type dnsConns struct {
	mu    sync.Mutex
	clock uint64 // counts queries and connections
	list  map[*dnsConn]struct{}
}

// dnsConn is one of them.
type dnsConn struct {
	net.Conn
	last uint64 // clock of its last answer, or of its beginning
}

// add lets a client in, at the cost of the one that has been silent longest if there are too many.
func (s *dnsConns) add(c net.Conn) *dnsConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	if len(s.list) >= maxDNSConns {
		var oldest *dnsConn
		for other := range s.list {
			if oldest == nil || other.last < oldest.last {
				oldest = other
			}
		}
		delete(s.list, oldest)
		_ = oldest.Close()
	}
	client := &dnsConn{Conn: c, last: s.clock}
	s.list[client] = struct{}{}
	return client
}

// used notes an answer.
func (s *dnsConns) used(c *dnsConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	c.last = s.clock
}

// remove ends the count of a client.
func (s *dnsConns) remove(c *dnsConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.list, c)
}
