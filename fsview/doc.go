// Package fsview turns path rules into what a sandboxed process sees of the file system.
//
// What belongs here: the planner (rules and a view of the disk -> an ordered mount plan and Landlock rules; pure, it
// reads the disk only through the Tree interface) and the compiler that encodes a plan as steps of a launch program.
//
// Two answer questions about a finished plan without the kernel: the Guard, which the broker asks about what no mount can
// hold, and the Judge, which says of any access what comes of it and by which rule.
//
// What does not belong here: starting processes (ns), and the meaning of an entry's text (runtime/policy).
package fsview
