// Package violation holds what was refused: the event, the exact shape of its line and of its JSON object, the cleaning of
// text that came from inside a sandbox, what would allow it, and the store of the latest records with those who read it
// (rules NET-70 to NET-75, VIO-*, LIB-52).
//
// What belongs here: types and functions that make no system call. What does not: the sources of events (proxy, seccomp,
// bpf), and where reports are written to (cmd/srt).
package violation
