//go:build !linux

package proxy

import "net"

// prepareCaptured has nothing to do: connections are captured on Linux only.
func prepareCaptured(net.Conn) {}
