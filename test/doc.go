// Package test runs the real srt from outside: whole commands, as root and as an ordinary user, judged by what happened
// on the host.
//
// What belongs here: everyday programs in a sandbox (builds, git, npm, apt, shells on a terminal), the cases of the
// rule chapters, and the promise that nothing stays behind. Rule numbers are in the names of the tests.
//
// What does not belong here: tests of one package (beside that package), transcripts of the command line
// (cmd/srt/testdata/script) and attacks (test/escape).
package test
