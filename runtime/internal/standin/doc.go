// Package standin is the process that a caller of runtime.Cmd.Prepare spawns itself, and what it and the session say to one
// another.
//
// The process is the embedder's own program, executed with Args. This package recognises that in an init function, stands for
// the sandboxed command until that has ended, and exits with its status; the program's main never runs. In every other
// process the init function compares one string.
//
// What belongs here: the protocol, the process's own conduct (streams, signals, terminal), and receiving it in the session.
//
// What does not belong here: launching. Package runtime does that, with what arrived here, as it does for Start.
package standin
