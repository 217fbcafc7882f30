// Package cases runs the cases from public bug reports in modes nested and confined: scripts of their own with a runner run.sh,
// which re-create what a user ran into and say in their exit status whether srt does right.
//
// What belongs here: the run (cases_linux_test.go), the stand-in for srt that allows mode confined in the settings of each case
// (in-mode.sh), and the list of cases that mode confined is another in, each with the row of docs/modes.md that says so.
//
// What does not belong here: the cases, which SRT_CASES names the directory of, and tests of single features (package test).
package cases
