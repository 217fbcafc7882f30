// Package stage is the ground on which real programs run twice: once as they are, and once in a sandbox.
//
// What belongs here: building srt and handing it to root and to an ordinary user, a directory of one test with a home
// and a project in it, running shell text outside and inside, and comparing the trees that come of it.
//
// What does not belong here: the programs themselves (test/programs), what watches them (test/traces), and any rule of
// a sandbox.
package stage
