// Package traces watches the host with inotify(7) while srt runs: nothing changes but what the command did, and nothing
// stays behind, whatever is killed and when (FS-30, FS-33, FS-52 to FS-54).
//
// The tests run in a mount namespace of their own with fresh directories for temporary files, so that every event there
// is theirs.
//
// What belongs here: what the host sees happen to names and files. What does not belong here: processes, mounts and
// sockets that stay behind (test), and what a program produces (test/programs).
package traces
