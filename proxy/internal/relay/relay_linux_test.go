package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ioCounters returns what read(2) and write(2) have moved in this process so far: rchar and wchar of proc_pid_io(5).
// splice(2) is not counted there.
func ioCounters(t *testing.T) (read, written int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(b), "rchar: %d\nwchar: %d\n", &read, &written); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return read, written
}

// TestBulkIsSpliced moves bytes between two ends of this process. Each end counts them once; were the tunnel to copy
// them, they would be counted twice.
func TestBulkIsSpliced(t *testing.T) {
	const size = 256 << 20
	for _, first := range kinds {
		client, server, done := joined(t, first, "tcp", Tunnel{})
		read, written := ioCounters(t)
		go func() {
			_, _ = io.CopyN(client, zeros{}, size)
			_ = CloseWrite(client)
		}()
		n, err := io.CopyBuffer(onlyWriter{io.Discard}, onlyReader{server}, make([]byte, 1<<20))
		if n != size || err != nil {
			t.Fatal(n, err)
		}
		readAfter, writtenAfter := ioCounters(t)
		// What comes in small pieces is copied on purpose, which may be some of it.
		if r, w := readAfter-read, writtenAfter-written; r > size+size/4 || w > size+size/4 || r < size || w < size {
			t.Errorf("%s to tcp: read %d, wrote %d for %d bytes", first, r, w, size)
		}
		_ = CloseWrite(server)
		<-done
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// onlyReader and onlyWriter keep package io from finding a way round read(2).
type onlyReader struct{ io.Reader }
type onlyWriter struct{ io.Writer }

func descriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestIdleTunnelsHoldNothing: a silent tunnel holds its two sockets and no pipe, before and after traffic.
func TestIdleTunnelsHoldNothing(t *testing.T) {
	client, server, done := joined(t, "tcp", "tcp", Tunnel{})
	before := descriptors(t)
	go func() { _, _ = io.CopyN(client, zeros{}, 8<<20) }()
	if _, err := io.CopyN(io.Discard, server, 8<<20); err != nil {
		t.Fatal(err)
	}
	// Pipes that were used wait in a pool of package poll, at most one for each running thread, until the next collection.
	if !settles(func() bool { return pipesInUse(t) == 0 }) {
		t.Errorf("descriptors: %d before, %d after", before, descriptors(t))
	}
	client.Close()
	server.Close()
	<-done
}

// pipesInUse counts goroutines inside splice.
func pipesInUse(t *testing.T) int {
	t.Helper()
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return strings.Count(string(stacks), "poll.Splice(")
}

func TestQuiet(t *testing.T) {
	a, b := connPair(t, "tcp")
	if !Quiet(a) || Ended(a) || Quiet(wrapped{a.(*net.TCPConn)}) || Ended(wrapped{a.(*net.TCPConn)}) {
		t.Error("idle")
	}
	_, _ = b.Write([]byte("x"))
	if !settles(func() bool { return !Quiet(a) }) || Ended(a) {
		t.Error("with a byte waiting")
	}
	_, _ = a.Read(make([]byte, 1))
	if !Quiet(a) {
		t.Error("after it was read")
	}
	b.Close()
	if !settles(func() bool { return !Quiet(a) }) || !Ended(a) {
		t.Error("after the peer closed")
	}
}

// TestNET25_PeerThatHasClosedBothWays: a client that has closed its connection cannot be told from one that still reads until
// it is probed. The one that reads has its tunnel for as long as it likes, however little happens.
func TestNET25_PeerThatHasClosedBothWays(t *testing.T) {
	usual := gone
	gone = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 2}
	defer func() { gone = usual }()
	reader, answering, stillOpen, first := joinedRunning(t, "tcp", "tcp", Tunnel{})
	_ = CloseWrite(reader)
	client, server, done, second := joinedRunning(t, "tcp", "tcp", Tunnel{})
	raw, err := client.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// The kernel need not remember the closed socket for long.
	err = raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_LINGER2, 1) })
	if err != nil {
		t.Fatal(err)
	}
	_ = CloseWrite(client)
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	client.Close()
	if !settles(func() bool { return first.taken.Load() && second.taken.Load() }) {
		t.Fatal("the end of input was not passed on")
	}
	for range 2 {
		if first.Abandoned() || second.Abandoned() {
			t.Error("abandoned although nothing is known yet")
		}
	}
	<-done // though the server never answers
	select {
	case <-stillOpen:
		t.Fatal("a client that only ended its sending has lost its tunnel")
	default:
	}
	_, _ = io.WriteString(answering, "reply")
	answering.Close()
	if reply, err := io.ReadAll(reader); string(reply) != "reply" || err != nil {
		t.Errorf("%q, %v", reply, err)
	}
	reader.Close()
	<-stillOpen
}

// TestLeave: what the client sent is delivered, the end of the tunnel waits for it, and what the server has to say for
// nothing.
func TestLeave(t *testing.T) {
	for name, first := range map[string]func(client, server net.Conn){
		"open":          func(client, _ net.Conn) { client.Close() },
		"half-closed":   func(client, _ net.Conn) { _ = CloseWrite(client) },
		"server ended":  func(client, server net.Conn) { _ = CloseWrite(server); client.Close() },
		"server silent": func(client, server net.Conn) { _, _ = io.WriteString(client, "all"); client.Close() },
	} {
		eachKind(t, func(t *testing.T, kindA, kindB string) {
			client, a := connPair(t, kindA)
			server, b := connPair(t, kindB)
			_, _ = a.SetDeadline(time.Time{}), b.SetDeadline(time.Time{})
			done := make(chan struct{})
			r := Tunnel{A: a, B: b, Done: func() { close(done) }}.Start()
			first(client, server)
			r.Leave()
			got, err := io.ReadAll(server)
			if want := map[bool]string{true: "all"}[name == "server silent"]; string(got) != want || err != nil {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			<-done
			r.Leave()
			if r.Waiting() != 0 {
				t.Errorf("%s: %d bytes wait in a tunnel that has ended", name, r.Waiting())
			}
		})
	}
}
