package records

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestRoundTrip holds that nothing is lost, doubled or reordered, whatever the sizes of reads and writes are.
func TestRoundTrip(t *testing.T) {
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			c, _, server := pair(t, version, overTCP)
			go io.Copy(server, server)
			want := pattern(5 << 20)
			go func() {
				for rest, size := want, 1; len(rest) > 0; size = size*3 + 1 {
					if size > 300<<10 {
						size = 1
					}
					n := min(size, len(rest))
					if m, err := c.Write(rest[:n]); m != n || err != nil {
						t.Errorf("wrote %d of %d: %v", m, n, err)
						return
					}
					rest = rest[n:]
				}
			}()
			got := make([]byte, 0, len(want))
			for size := 1; len(got) < len(want); size = size*5%100_003 + 1 {
				buf := make([]byte, size)
				n, err := c.Read(buf)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, buf[:n]...)
			}
			if !bytes.Equal(got, want) {
				t.Error("what came back is not what was sent")
			}
		})
	}
}

// TestOneWrite holds that several records go with one call, and that none stays behind.
func TestOneWrite(t *testing.T) {
	c, beneath, server := pair(t, tls.VersionTLS13, overTCP)
	for _, size := range []int{1, 16 << 10, 16<<10 + 1, 64 << 10, 200 << 10} {
		want := pattern(size)
		_, before := beneath.counts()
		got := make([]byte, size)
		done := make(chan error, 1)
		go func() {
			_, err := io.ReadFull(server, got)
			done <- err
		}()
		if n, err := c.Write(want); n != size || err != nil {
			t.Fatal(n, err)
		}
		if err := <-done; err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if _, after := beneath.counts(); after-before != 1 {
			t.Errorf("%d bytes took %d writes", size, after-before)
		}
	}
}

// TestReadsAhead holds that records that are there are read with few calls, and returned by one.
func TestReadsAhead(t *testing.T) {
	c, beneath, server := pair(t, tls.VersionTLS13, overTCP)
	const size = 1 << 20
	want := pattern(size)
	go server.Write(want)
	before, _ := beneath.counts()
	got := make([]byte, 0, size)
	most := 0
	for buf := make([]byte, 64<<10); len(got) < size; {
		n, err := c.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
		got = append(got, buf[:n]...)
	}
	if !bytes.Equal(got, want) {
		t.Error("what came is not what was sent")
	}
	after, _ := beneath.counts()
	t.Logf("%d reads for %d records, at most %d bytes at once", after-before, size/oneRecord, most)
	if most <= oneRecord {
		t.Error("no read has brought more than one record")
	}
}

// TestNeverWaitsForMore holds that a read returns what has come although a part of the next record is there already, and
// that the part is not lost.
func TestNeverWaitsForMore(t *testing.T) {
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			gate := &gated{}
			c, _, server := pair(t, version, func(t testing.TB) (net.Conn, net.Conn) {
				near, far := overTCP(t)
				gate.Conn = far
				return near, gate
			})
			want := pattern(100 << 10)
			gate.keepAll()
			if _, err := server.Write(want); err != nil {
				t.Fatal(err)
			}
			var got []byte
			buf := make([]byte, 64<<10)
			for gate.release(30_000) { // ends in the midst of a record, mostly
				for whole := gate.wholeRecords(); len(got) < min(whole, len(want)); {
					n, err := c.Read(buf)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, buf[:n]...)
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got %d of %d bytes, or others", len(got), len(want))
			}
		})
	}
}

// TestBrokenStaysBroken holds that nothing is sent behind a gap.
func TestBrokenStaysBroken(t *testing.T) {
	c, beneath, _ := pair(t, tls.VersionTLS13, overTCP)
	_, writes := beneath.counts()
	beneath.failFrom = writes + 1
	if n, err := c.Write(pattern(64 << 10)); n != 0 || !errors.Is(err, errNoMore) {
		t.Fatalf("got %d, %v", n, err)
	}
	beneath.failFrom = 0
	for _, size := range []int{1, 64 << 10} {
		if _, err := c.Write(pattern(size)); !errors.Is(err, errNoMore) {
			t.Errorf("%d bytes after a failed write: %v", size, err)
		}
	}
	if _, after := beneath.counts(); after != writes+1 {
		t.Errorf("%d more writes reached the connection", after-writes-1)
	}
}

// TestDeadlines holds that a read that timed out can be had again, in the midst of records as well.
func TestDeadlines(t *testing.T) {
	c, _, server := pair(t, tls.VersionTLS13, overTCP)
	go server.Write(pattern(1 << 20))
	got, buf := 0, make([]byte, 20_000)
	for got < 1<<20 {
		if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		n, err := c.Read(buf)
		got += n
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err == nil || got == 1<<20 {
			continue
		}
		if n, err = c.Read(buf); err != nil {
			t.Fatal(err)
		}
		got += n
	}
}

// TestEnd holds that close_notify is an end of input, and a connection cut in a record is none, right behind records as well.
func TestEnd(t *testing.T) {
	for name, end := range map[string]struct {
		by   func(*tls.Conn)
		want error
	}{
		"close_notify": {func(c *tls.Conn) { c.Close() }, io.EOF},
		"cut in a record": {func(c *tls.Conn) {
			c.NetConn().Write([]byte{23, 3, 3, 64, 0, 1, 2, 3})
			c.NetConn().Close()
		}, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, server := pair(t, tls.VersionTLS13, overTCP)
			go func() {
				server.Write(pattern(100_000))
				end.by(server)
			}()
			sum, buf := 0, make([]byte, 64<<10)
			for {
				n, err := c.Read(buf)
				sum += n
				if err == nil {
					continue
				}
				if again, err2 := c.Read(buf); again != 0 || !errors.Is(err2, end.want) {
					t.Errorf("a second time: %d, %v", again, err2)
				}
				if !errors.Is(err, end.want) || sum != 100_000 {
					t.Errorf("got %d bytes and %v, want %v", sum, err, end.want)
				}
				return
			}
		})
	}
}

// TestIdleHoldsNothing holds that a connection that waits has no buffer.
func TestIdleHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, server := pair(t, tls.VersionTLS13, func(testing.TB) (net.Conn, net.Conn) { return net.Pipe() })
		go io.Copy(server, server)
		buf := make([]byte, 100)
		for range 3 {
			if _, err := c.Write(buf); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, buf); err != nil {
				t.Fatal(err)
			}
		}
		go c.Read(buf)
		synctest.Wait()
		if s := c.socket; s.buffer != nil || s.ahead || s.held != nil {
			t.Errorf("buffer %v, ahead %t, held %v", s.buffer != nil, s.ahead, s.held != nil)
		}
		c.Close()
		server.Close()
	})
}

// TestCloseEndsAWrite holds that a connection whose peer reads nothing can be closed under a write.
func TestCloseEndsAWrite(t *testing.T) {
	c, _, _ := pair(t, tls.VersionTLS13, overTCP)
	written := make(chan error, 1)
	go func() {
		for {
			if _, err := c.Write(pattern(256 << 10)); err != nil {
				written <- err
				return
			}
		}
	}()
	for c.writing.TryLock() { // until a write is under way
		c.writing.Unlock()
	}
	c.Close()
	if err := <-written; err == nil {
		t.Error("a write to a closed connection succeeded")
	}
}

// FuzzSlices holds that it does not matter in which pieces the bytes of a connection come.
func FuzzSlices(f *testing.F) {
	f.Fuzz(func(t *testing.T, slices []byte, size uint16) {
		c, beneath, server := pair(t, tls.VersionTLS13, overTCP)
		beneath.mu.Lock()
		beneath.slices = slices
		beneath.mu.Unlock()
		want := pattern(150_000)
		go func() {
			server.Write(want)
			server.Close()
		}()
		var got []byte
		for buf := make([]byte, int(size)+1); ; {
			n, err := c.Read(buf)
			got = append(got, buf[:n]...)
			if err != nil {
				if !errors.Is(err, io.EOF) || !bytes.Equal(got, want) {
					t.Fatalf("%d bytes, %v", len(got), err)
				}
				return
			}
		}
	})
}
