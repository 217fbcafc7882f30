// Package probe has a value for each kernel feature that srt uses: its name, what it needs, why it matters, and how to ask
// for it. The mode that commands are started in, "srt check", error messages and the skips of tests all read these values.
//
// What belongs here: asking, by doing the thing; what cannot be undone is done by a short-lived child (package ns) or by a
// thread that ends. What does not: deciding what follows (runtime), and finding out who refuses (probe/hostfacts).
//
// A feature is asked once in a process, when it is first needed. Asking costs forks: a start of a command asks only what costs
// no more than a few system calls, and the rest when it has failed.
//
// The environment variable SRT_WITHOUT takes features away, for diagnosis and for tests: "SRT_WITHOUT=procfs,landlock=4" is a
// kernel that mounts no fresh procfs and has Landlock ABI 4 at most. It can only take away, so it makes srt stricter, or has it
// refuse.
package probe
