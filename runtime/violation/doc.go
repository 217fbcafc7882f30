// Package violation holds what was refused: the event, the exact shape of its line, and the cleaning of text that came
// from inside a sandbox (rules NET-70 to NET-75, VIO-*).
//
// What belongs here: pure functions and types. What does not: the sources of events (proxy, seccomp, bpf).
package violation
