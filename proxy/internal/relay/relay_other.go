//go:build !linux

package relay

import "net"

// pump moves bytes from src to dst until the end of src (nil) or an error, a *writeError if it is dst's.
func pump(dst, src net.Conn) error { return pumpBuffered(dst, src) }

// waitGone does not wait and reports false: whether a peer that has ended its sending still reads cannot be asked on this
// system, and the next write to it tells.
func waitGone(net.Conn) bool { return false }

// probe and isGone: nor can it be asked while nothing moves.
func probe(net.Conn)       {}
func isGone(net.Conn) bool { return false }

// waiting cannot be asked on this system and is 0.
func waiting(net.Conn, net.Conn) int { return 0 }

// Quiet reports false: idle connections cannot be asked on this system, so that none is used again.
func Quiet(net.Conn) bool { return false }

// Ended reports false: it cannot be told on this system without waiting.
func Ended(net.Conn) bool { return false }

// Unsent is 0: how much of what was written has not been taken is told on Linux only.
func Unsent(net.Conn) int { return 0 }
