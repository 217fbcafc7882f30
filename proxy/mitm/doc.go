// Package mitm is the client's side of TLS termination (rules TLS-5 to TLS-14, TLS-23 to TLS-27 and TLS-36): the
// certificate authority of a session, the certificates it issues for the hosts that are spoken to, the handshake with
// a client, and what makes clients trust it.
//
//	ca.go      the authority: made, or given; load.go reads a given one and says what is wrong with it
//	leaf.go    one certificate per host name (TLS-26, TLS-27)
//	hello.go   the handshake (TLS-23 to TLS-25)
//	roots.go   which authorities the host trusts (TLS-12, TLS-13, TLS-36); rootfiles.go finds their files
//	files.go   the files a command reads: bundle, certificate, trust store of a JVM (TLS-8, TLS-12, TLS-14)
//	pkcs12.go  that trust store's format
//
// What belongs here: certificates and the handshake. What does not: which tunnels are terminated (package proxy), what
// is said inside them (proxy/internal/inspect), and how the sandbox sees the files (runtime).
//
// A private key never leaves this package: no function returns one, no error quotes one, and a key that was made here is
// never written anywhere.
package mitm
