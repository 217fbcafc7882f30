// Package seccomp holds the system call filters of a sandbox and the program text that loads them.
//
// What belongs here: the rules, their generator (libseccomp, at build time only), the generated BPF for each
// architecture, and a simulator that tests compare with a plain statement of the rules.
//
// What does not belong here: starting processes (ns), and the choice of filters for a given settings file (runtime).
package seccomp
