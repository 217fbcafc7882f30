// Package programs runs everyday programs twice in the same place, outside and in a sandbox with only their project
// writable and denies of names that do not exist in force, and compares status, output and the trees they produce.
//
// What belongs here: a line in a table for each use of a program (git, compilers, package managers, editors, archivers,
// shells), and the refusals that such programs meet by design, with the exact file and message.
//
// What does not belong here: single system calls (test, test/differential), attacks (test/escape) and events seen from
// the host (test/traces).
package programs
