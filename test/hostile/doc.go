// Package hostile runs programs in a sandbox that do all they can to reach a host, a socket or a name server that the
// settings do not allow, without a proxy (issue "the whole network policy"; NET-3, NET-7, NET-80, NET-81, and the limits
// that end the chapter). What counts is what the servers outside saw; and that the program was told at once.
//
// The tests make a small world of their own, in namespaces that end with them: a host that runs srt, and behind a pair of
// virtual interfaces a network of servers, a name server among them. Every packet that enters that network, or the
// loopback interface of the host, is recorded where it arrives.
//
// What belongs here: attacks on the capturing of connections, on names and on Unix sockets by programs that know how it
// works. What does not belong here: attacks on the rest of a sandbox, and by way of the proxies alone (test/escape), and
// programs that mean well (test/clients).
//
// Races are short by default. SRT_TEST_TRIES says how many connections each of them makes.
package hostile
