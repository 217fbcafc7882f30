// Package policy turns settings and surroundings (working directory, home, environment) into decisions: may this
// host and port be reached, which path does this entry name, which variables does the command see.
//
// What belongs here: pure functions. Every question that this package answers can be asked, printed and fuzzed
// without a kernel.
//
// What does not belong here: system calls, listeners, mounts, and the schema of the settings file (runtime/config).
package policy
