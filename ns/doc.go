// Package ns makes Linux namespaces by system call and runs a launch program in them.
//
// What belongs here: clone with namespaces, identity maps, the launch program and its interpreter (the only code that
// runs between clone and exec), pid 1 of a sandbox, or the two processes in its place where there are no namespaces,
// hand-over of descriptors, waiting and reaping; and hands, processes that make system calls in a running sandbox for the
// host side.
//
// What does not belong here: policy of any kind. A caller hands over a finished program (see Program); this package
// executes it and reports which step failed. Nothing but this package forks.
package ns
