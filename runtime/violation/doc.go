// Package violation holds what was refused: the event, the exact shape of its line, the cleaning of text that came from
// inside a sandbox, and the store of the latest records (rules NET-70 to NET-75, VIO-*).
//
// What belongs here: types and functions that make no system call. What does not: the sources of events (proxy, seccomp, bpf).
package violation
