// Package pause stops a process's descendants, all of them, tells whether they stood still, and lets them go on again: what
// SIGSTOP to a process group does for one group, for every group and session of a sandbox.
//
// What belongs here: reading the process tree in /proc and signals by pidfd. What does not: why (runtime, which lends the
// terminal meanwhile) and sandboxes (ns).
//
// It is for a person's time scale: a pause takes milliseconds and reads the status of every process of the host.
package pause
