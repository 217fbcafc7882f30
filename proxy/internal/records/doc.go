// Package records lets a TLS connection move several records with one system call.
//
// Package crypto/tls asks its connection for about one record of 16 KiB at a time, and writes each one by itself. Where the
// far end is on the same host, or as fast, the calls then cost as much as the encryption. A [Socket] beneath the TLS
// connection reads ahead while the far end is ahead, and holds records back until all of what was to be written is there; a
// [Conn] above it says when.
//
// What belongs here: the two layers. What does not: what a record means, and deadlines, which pass through. Nothing is held
// back once a call has returned, and a connection on which nothing comes holds no buffer, but for one that went quiet right
// after more than 32 KiB at once.
package records
