// Package httphead parses and writes HTTP/1.x heads and chunked bodies for a proxy that forwards them as spelled.
//
// What belongs here: the grammar of RFC 9112 and nothing else: request and status lines, field lines in their order and
// spelling, the choice of body framing, chunked coding with trailers. The package is strict where leniency lets two
// parsers disagree about where a message ends (NET-31): bare LF, folded lines, a blank before the colon, two lengths.
//
// What does not belong here: connections, timeouts, which fields are forwarded and to whom (package proxy).
package httphead
