package inspect

import (
	"bufio"
	"context"
	"net"
)

// Serve reads requests from a client's connection, one at a time, and forwards what its handler lets through.
func Serve(ctx context.Context, conn net.Conn, br *bufio.Reader, h Handler, l Limits) (taken bool) {
	return false
}
