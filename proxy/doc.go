// Package proxy is the host side of a sandbox's network: HTTP and SOCKS5 on one listener, the check of resolved
// addresses, and the way out (direct or through a parent proxy).
//
// What belongs here: protocols and the relaying of bytes. What does not: namespaces (this package is handed listeners)
// and the decision itself (runtime/policy).
package proxy
