package rules

const (
	solSocket = 1 // SOL_SOCKET and SO_ERROR, the same on both architectures (asm-generic/socket.h)
	soError   = 4

	msgFastopen = 0x20000000 // MSG_FASTOPEN
)

// network is for sandboxes whose programs reach the allowed hosts by their own connect (NET-3, and the first of the limits of
// the reference): the broker judges every connect and performs it on a duplicate of the caller's socket. What a program asks
// of that socket afterwards, whom it is connected to and what became of it, the broker answers as well. Datagrams need no
// judge: the routes of the network namespace hold them.
func network() Filter {
	return Filter{Name: "network", Rules: join([]Rule{
		{Call: "connect", Notify: true, Why: "leads to a host or a socket, which the policy may deny"},
		{Call: "bind", Notify: true, Why: "an AF_UNIX socket's address is a name, and gives others a way to it"},
		{Call: "getpeername", Notify: true, Why: "the broker knows which destination a captured connection was made to"},
		{Call: "getsockopt", When: []Cond{{1, low32, solSocket}, {2, low32, soError}}, Text: "level = SOL_SOCKET, option = SO_ERROR",
			Notify: true, Why: "the broker knows why a captured connection failed"},
	}, withoutConnect(), ownLayers())}
}

// withoutConnect refuses what connects a socket without a connect.
func withoutConnect() []Rule {
	const fastopen = "connects with the first data, without a connect that the broker could judge; programs fall back to one"
	return []Rule{
		{Call: "sendto", When: []Cond{{3, msgFastopen, msgFastopen}}, Text: "flags & MSG_FASTOPEN", Errno: EOPNOTSUPP, Why: fastopen},
		{Call: "sendmsg", When: []Cond{{2, msgFastopen, msgFastopen}}, Text: "flags & MSG_FASTOPEN", Errno: EOPNOTSUPP, Why: fastopen},
		{Call: "sendmmsg", When: []Cond{{3, msgFastopen, msgFastopen}}, Text: "flags & MSG_FASTOPEN", Errno: EOPNOTSUPP, Why: fastopen},
	}
}
