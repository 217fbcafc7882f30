// Package socket makes the few calls on sockets that no library offers: with an address that is passed on byte for byte as
// a program of a sandbox gave it, of whatever family and length.
//
// What belongs here: raw system calls on sockets that the broker holds. What does not: any decision about them.
package socket
