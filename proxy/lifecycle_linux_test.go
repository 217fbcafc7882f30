package proxy

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestIdleTunnelsUseNoCPU: nothing polls, neither in a silent tunnel nor in one of which one half has ended.
func TestIdleTunnelsUseNoCPU(t *testing.T) {
	leave := make(chan struct{})
	deaf := serveEach(t, func(c *net.TCPConn) { // takes note of the end of input and stays
		_, _ = io.Copy(c, c)
		<-leave
	}).Port
	defer close(leave)
	h := start(t, baseRules)
	for i := range 50 {
		p := h.tunnel(fmt.Sprintf("127.0.0.1:%d", deaf))
		p.send("x")
		p.want("x")
		if i%2 == 0 {
			p.CloseWrite()
		}
	}
	const wait = 500 * time.Millisecond
	before := cpuTime(t)
	time.Sleep(wait)
	// One goroutine that spins takes all of a processor.
	if used := cpuTime(t) - before; used > wait/2 {
		t.Errorf("50 idle tunnels used %v of processor time in %v", used, wait)
	}
}

func cpuTime(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
