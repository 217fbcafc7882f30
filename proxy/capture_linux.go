package proxy

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepareCaptured makes the host side's end of a captured connection cheap to send on: it stays on loopback, where nothing
// can be congested, and the pacing of some congestion control algorithms costs half of the throughput there. Reno has
// none, is always there, and is open to every user (tcp(7), TCP_CONGESTION). A connection that is no TCP is left alone.
func prepareCaptured(conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	setReno := func(fd uintptr) { _ = unix.SetsockoptString(int(fd), syscall.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") }
	_ = raw.Control(setReno) // without it the connection is only slower
}
