// Package inspect is the strict HTTP/1.x engine for one client connection whose requests are looked at one by one: inside
// a tunnel whose TLS srt ends, and on the connections of srt proxy.
//
// What belongs here: reading requests (TLS-30), what is asked about each of them ([Handler]), sending them on with a framing
// of this package's own (TLS-34), relaying responses (TLS-35), the one upstream connection of a client's (TLS-38), timers
// (TLS-43, TLS-44) and the ways in which a connection ends (TLS-46).
//
// What does not belong here: TLS, names and addresses, credentials, which request is allowed, and what a refusal says. All of
// that is behind [Handler] and [Outgoing.Dial].
//
// A request goes this way; each step is a file:
//
//	serve.go      one head after the other      / malformed.go  what is wrong with one
//	body.go       a body that a handler may look at before it goes out
//	exchange.go   one request and its response  / watch.go      a client that leaves meanwhile; stall.go: bytes that do not move
//	upload.go     the request, upstream         / upstream.go   the connection that it goes out on
//	response.go   the response, downstream      / upgrade.go    what is no HTTP any more after it (101)
//	closing.go    how a connection ends
package inspect
