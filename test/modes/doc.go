// Command modes runs packages of the suite in mode nested or confined and judges the outcome: a test may fail only if a row of
// docs/modes.md says that what it wants is different in that mode, and a test that is excused and passes fails the run, too.
//
// What belongs here: the judging (judge.go), the list of excuses (excuses.go), and what runs as a stage of CI (core.go).
//
// What does not belong here: how a run is put into a mode (package test/mode).
package main
