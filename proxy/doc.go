// Package proxy is the host side of a sandbox's network: HTTP and SOCKS5 on one listener, the check of resolved
// addresses, and the way out (direct or through a parent proxy).
//
// What belongs here: protocols and the relaying of bytes. What does not: namespaces (this package is handed listeners)
// and the decision itself (runtime/policy).
//
// A connection goes this way; each step is a file:
//
//	server.go    accept, count                       / scope.go       what ends with a command, and what is seen out
//	capture.go   a connection of a program that knows no proxy: the broker of its connect(2) asks here in place of a client
//	names.go     the synthetic addresses that stand for names inside; dns.go: the stub that tells programs
//	client.go    first byte (NET-22) -> SOCKS or HTTP heads; auth.go: who it is (NET-18 to NET-21)
//	connect.go   CONNECT     \                       / dial.go        lookup, judge, connect (NET-50 to NET-53)
//	socks.go     SOCKS5       > policy.Decide (NET-7)
//	plain.go     http://...  /                       \ parentdial.go  CONNECT to the parent (NET-61)
//	terminate.go CONNECT whose TLS ends here (TLS-16 to TLS-21); terminateslots.go: how many; terminatecapture.go: without a CONNECT
//	terminatetunnel.go       the requests inside     / terminateupstream.go  verified TLS to the target (TLS-36 to TLS-40)
//	request.go   what concerns a request alone, whichever path it came by (REQ-2); inject.go: masked credentials (CRED-20 to CRED-34)
//	filter.go    a request filter's say (NET-35 to NET-37); filtertarget.go: what a target means
//	answer.go    what a client is told               report.go  what the user is told (NET-70)
//	internal/local           sockets that do not leave this host, cheaper
//	internal/inspect         requests in a tunnel whose TLS ends here; it knows no policy
//	internal/relay           tunnels                 transfer.go, body.go  one request and its response
//
// Every refusal and every failure ends in an answer or a closed connection: nothing is dialled that Decide has not
// allowed, and no address is connected that was not judged.
package proxy
