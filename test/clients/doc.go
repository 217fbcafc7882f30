// Package clients runs the network programs that people really use in a sandbox, with the proxy variables that srt sets
// and with none at all (issue "the whole network policy"; NET-7, NET-50, NET-90, and the limits that end the chapter).
// Each program works when its host is listed, and fails, without one connection to the server, when it is not. Where TLS is
// ended and its token masked, it works as well: the server has the token, and nothing in the sandbox ever has (issue "TLS
// termination, request filtering, credentials that never enter the sandbox"; CRED-20 to CRED-26, CRED-35).
//
// The tests make a small world of their own, in namespaces that end with them: a host that runs srt, with names of its own
// in /etc/hosts, and behind a pair of virtual interfaces a network of servers that count what arrives. Nothing of the
// machine is changed, and nothing of its network is used.
//
// What belongs here: whole programs, the servers they need, and what arrives there. What does not belong here: the bytes of
// a protocol (package proxy), the calls of a socket (seccomp/broker), programs that need no network (test/programs), and
// attacks (test/escape).
package clients
