package runtime

import (
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
)

// listenAllowed is a server on loopback, and a session whose rules allow it and nothing else.
func listenAllowed(t *testing.T) (l net.Listener, port string, s *Sandbox) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	cfg := config.Default()
	cfg.Network.AllowedDomains = []string{"127.0.0.1:" + port}
	if s, err = New(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return l, port, s
}

// runScript runs a command of a session to its end.
func runScript(t *testing.T, s *Sandbox, script string) {
	t.Helper()
	cmd := s.Shell(context.Background(), script)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME="}
	cmd.Dir, cmd.Stderr = t.TempDir(), os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

// TestNET25_TunnelsEndWithTheirCommand: in a session that goes on, nothing is left of the connections of a command that has
// ended, though the server they lead to never ends one.
func TestNET25_TunnelsEndWithTheirCommand(t *testing.T) {
	l, port, s := listenAllowed(t)
	accepted := make(chan net.Conn, 4)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c // and nothing is read or sent
		}
	}()
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	runScript(t, s, "true") // what a session makes once is made
	before := descriptors()
	runScript(t, s, `exec 3<>/dev/tcp/127.0.0.1/`+port+` && printf x >&3
		exec 4<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT 127.0.0.1:`+port+` HTTP/1.1\r\nProxy-Authorization: Basic %s\r\n\r\n' \
			"$(u=${http_proxy#http://}; printf %s "${u%%@*}" | sed 's/%3D/=/g; s/%2B/+/g; s/%2F/\//g' | base64 -w0)" >&4 &&
			head -c 12 <&4 >&2 && exec 3>&- && sleep 0.1`)
	for range 2 {
		c := <-accepted
		defer c.Close()
	}
	end := time.Now().Add(20 * time.Second)
	for descriptors() > before+2 && time.Now().Before(end) {
		time.Sleep(5 * time.Millisecond)
	}
	if after := descriptors(); after > before+2 { // the server's own two
		t.Errorf("%d descriptors before the command, %d after it", before, after)
	}
}

// TestNET25_WhatWasSentBeforeTheEndArrives: a command may send, close and end, and so may the session.
func TestNET25_WhatWasSentBeforeTheEndArrives(t *testing.T) {
	const size = 12 << 20 // more than the buffers of the connection to the server hold
	l, port, s := listenAllowed(t)
	got := make(chan int64, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- -1
			return
		}
		defer c.Close()
		var total int64
		for {
			n, err := io.CopyN(io.Discard, c, 64<<10)
			total += n
			if err != nil {
				got <- total
				return
			}
			time.Sleep(2 * time.Millisecond) // slower than the command
		}
	}()
	runScript(t, s, "head -c "+strconv.Itoa(size)+" /dev/zero >/dev/tcp/127.0.0.1/"+port)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := <-got; n != size {
		t.Errorf("%d bytes of %d arrived", n, size)
	}
}
