package relay

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// bufferSize is the size of the buffers for bytes that splice(2) does not move.
const bufferSize = 32 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Tunnel is two connections to be joined, A the client's. Ownership of both passes to [Tunnel.Start].
type Tunnel struct {
	A, B net.Conn
	// ToA and ToB are bytes that reach A or B before anything else; Start keeps them until they are written.
	ToA, ToB []byte
	// Done is called once, when both connections are closed and both goroutines are about to end. It may be nil.
	Done func()
}

// Start moves bytes in both directions and returns at once. An end of input on one side is passed on as an end of input
// (half-close, NET-25); both connections are closed when both directions have ended, or as soon as one side is found
// dead. A tunnel without traffic holds two small goroutines and no buffer.
func (t Tunnel) Start() *Running {
	r := &Running{a: t.A, b: t.B, done: t.Done}
	r.directions.Store(2)
	r.goroutines.Store(2)
	go r.run(t.B, t.A, t.ToB)
	go r.run(t.A, t.B, t.ToA)
	return r
}

// Running is a tunnel that was started. Its methods may be called from any goroutine, also when it has ended.
type Running struct {
	a, b       net.Conn
	done       func()
	directions atomic.Int32 // that may still carry bytes
	goroutines atomic.Int32
	left       atomic.Bool // see Leave
	taken      atomic.Bool // b has all that a sent

	waiting int  // at the last call of Abandoned; or ended
	probed  bool // by Abandoned
}

// run is one direction.
func (r *Running) run(dst, src net.Conn, first []byte) {
	r.direction(dst, src, first)
	if r.goroutines.Add(-1) == 0 {
		r.Close()
		if r.done != nil {
			r.done()
		}
	}
}

// Close closes both connections, whatever is on its way.
func (r *Running) Close() {
	_ = r.a.Close()
	_ = r.b.Close()
}

// Leave says that the client's side is closed for good and that nobody reads there any more. What it sent before is
// still delivered, as the kernel does for a program that has ended; then the tunnel ends.
func (r *Running) Leave() {
	r.left.Store(true)
	if r.taken.Load() {
		r.Close()
		return
	}
	_ = r.b.SetReadDeadline(time.Unix(1, 0)) // ends the other direction
}

// Waiting estimates how many bytes are on their way from the client to the far side. A number that stays the same means that
// nothing moves.
func (r *Running) Waiting() int { return waiting(r.a, r.b) }

// Abandoned looks after a tunnel that may have lost its client unseen: one that has ended its sending, or whose bytes the
// far side does not take. Where that was so at the last call too, which was not just now, the client is probed from then on;
// if it has closed its side for good the tunnel ends by that, or, where bytes of it wait, true is reported: there is nobody
// to whom it matters whether they arrive. A tunnel that moves costs no probe. It is not called by two goroutines at once.
func (r *Running) Abandoned() bool {
	last := r.waiting
	if r.waiting = r.Waiting(); r.taken.Load() {
		r.waiting = ended
	}
	if r.waiting == 0 || r.waiting != last {
		return false
	}
	if !r.probed {
		r.probed = true
		probe(r.a)
	}
	return r.waiting != ended && isGone(r.a)
}

// ended stands for the number of bytes that wait where no more will come.
const ended = -1

func (r *Running) direction(dst, src net.Conn, first []byte) {
	err := send(dst, src, first)
	var broken *writeError
	leaving := src == r.b && r.left.Load()
	if err != nil && !leaving && !errors.As(err, &broken) {
		if errors.Is(err, syscall.ECONNRESET) {
			abort(dst)
		}
		r.Close()
		return
	}
	if r.directions.Add(-1) == 0 {
		r.Close() // which tells dst the end of input as well
		return
	}
	if err == nil {
		_ = CloseWrite(dst) // fails only if dst is dead, which the other direction finds out
	}
	if src == r.a {
		r.taken.Store(true)
		if r.left.Load() {
			r.Close()
			return
		}
	}
	// If it is dst that is broken, what it sent before may still be on its way to src: that direction goes on. It may stay
	// silent for hours, though. If src is gone for good, and has not only ended its sending, nobody is left to read it.
	if !leaving && waitGone(src) && (src == r.a || !r.left.Load()) {
		r.Close()
	}
}

// send writes the first bytes and then what src sends.
func send(dst, src net.Conn, first []byte) error {
	if len(first) > 0 {
		if _, err := dst.Write(first); err != nil {
			return &writeError{err}
		}
	}
	return pump(dst, src)
}

// writeError marks an error of the receiving side.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// abort makes the next Close send a reset, so that a cut-off stream is not taken for a complete one.
func abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// CloseWrite shuts down the sending side of a connection, of every kind that has one. Others are an error.
func CloseWrite(c net.Conn) error {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// copyOnce reads once into a pooled buffer and writes what it got. io.EOF is the end of src.
func copyOnce(dst io.Writer, src io.Reader) error {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	n, err := src.Read(buf[:])
	if n > 0 {
		if _, werr := dst.Write(buf[:n]); werr != nil {
			return &writeError{werr}
		}
	}
	return err
}

// pumpBuffered copies with a buffer that is held while src is silent: for connections that are not plain sockets.
func pumpBuffered(dst io.Writer, src io.Reader) error {
	for {
		if err := copyOnce(dst, src); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
