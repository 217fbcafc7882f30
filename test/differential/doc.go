// Package differential compares the real srt with a plain model of the filesystem chapter (internal/model): random trees,
// policies and operations, each judged by the model first and then done by a probe in a sandbox.
//
// What belongs here: drawing cases from a seed, running them, and shrinking one that differs. After each case the host's
// tree must be what the model says, to the last name, mode and byte (FS-52).
//
// What does not belong here: single rules and programs (package test), attacks (test/escape).
//
// Run by root it takes root and the ordinary user named by SRT_TEST_USER (srt-test unless set) in turn. SRT_DIFF_SEED and
// SRT_DIFF_COUNT make longer or other runs; a failure prints the seed, a minimal tree, the settings and the operations.
package differential
