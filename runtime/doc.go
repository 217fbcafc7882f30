// Package runtime is the embedding API: from settings to the exit status of a confined command.
//
// What belongs here: sessions, the commands in them, and the one seam between platforms (backend_linux.go and its
// siblings): check, open a session, start a command, close.
//
// What does not belong here: decisions (runtime/policy), the schema of the settings file (runtime/config), system calls
// (ns, fsview, seccomp) and protocols (proxy). This package joins them.
package runtime
