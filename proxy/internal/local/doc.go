// Package local makes connections that do not leave this host cheaper: those of a sandbox to its proxy, and those of the
// proxy to a server on loopback.
//
// What belongs here: options of such sockets. What does not: anything about connections to other hosts, which keep what
// the system's administrator has chosen for them, and any decision about whom to connect to.
package local
