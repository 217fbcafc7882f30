// Package mitm will terminate TLS inside tunnels (rules TLS-*): certificate authority, leaf minting, the verified
// upstream leg. Until it exists, a settings file with network.tlsTerminate is refused at start.
package mitm
