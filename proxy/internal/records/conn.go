package records

import (
	"crypto/tls"
	"sync"
)

// oneRecord is the most plaintext bytes that fit into one record (RFC 8446 section 5.1).
const oneRecord = 16 << 10

// Conn is a TLS connection over a [Socket], after its handshake. It may be used like any net.Conn.
type Conn struct {
	*tls.Conn
	socket  *Socket
	reading sync.Mutex
	writing sync.Mutex
}

// Over makes a connection of one whose handshake is complete, and of the socket that it was made over. Only the result may
// be read from and written to from then on.
func Over(conn *tls.Conn, socket *Socket) *Conn { return &Conn{Conn: conn, socket: socket} }

// Read reads one record or part of it, and those behind it that are there already, as far as p has room.
func (c *Conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	n, err := c.Conn.Read(p)
	if err != nil {
		return n, err
	}
	for n < len(p) && c.socket.buffer != nil {
		c.socket.waitless = true
		more, err := c.Conn.Read(p[n:])
		c.socket.waitless = false
		n += more
		if err != nil {
			break // all but errNothingThere come again with the next read
		}
	}
	return n, nil
}

// Write writes all records of p with one call. An error leaves open how much of p has been sent.
func (c *Conn) Write(p []byte) (int, error) {
	if len(p) <= oneRecord {
		return c.Conn.Write(p)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.socket.hold()
	n, err := c.Conn.Write(p)
	if flushed := c.socket.flush(); err == nil && flushed != nil {
		return 0, flushed
	}
	return n, err
}

// Close ends the connection: with close_notify, but for one that is being written to, as package tls has it.
func (c *Conn) Close() error {
	if !c.writing.TryLock() {
		return c.socket.Close()
	}
	defer c.writing.Unlock()
	return c.Conn.Close()
}
