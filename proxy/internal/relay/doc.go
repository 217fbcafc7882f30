// Package relay moves bytes between two connected sockets until both directions have ended.
//
// What belongs here: the copying itself, half-close, the discovery of a dead end, and what that needs of the kernel
// (FIONREAD, MSG_PEEK, poll).
//
// What does not belong here: protocols, policy, and who the ends are.
package relay
