// Package runtime is the embedding API: from settings to the exit status of a confined command.
//
// What belongs here: sessions, the commands in them, and the one seam between platforms (backend_linux.go and its
// siblings): check, open a session, start a command, close.
//
// A session begins in sandbox.go and ends in shutdown.go; what is in force in it is one state (state.go), which an update
// replaces (update.go). A command is described in cmd.go, runs in cmdrun.go with the streams of stdio.go, under what
// override.go makes of the state; launch_linux.go compiles it and backend_linux.go starts it. What is refused comes in by
// report and out by violations.go.
//
// What does not belong here: decisions (runtime/policy), the schema of the settings file (runtime/config), system calls
// (ns, fsview, seccomp) and protocols (proxy). This package joins them.
package runtime
