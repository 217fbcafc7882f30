// Package placeholder denies names that do not exist by making them: the fallback of FS-54 for hosts on which no broker
// can be had. A name that is there can be mounted read-only or hidden; a name that is not cannot.
//
// What belongs here: making the placeholders on the host, the journal by which they are found again, the locks by which
// processes share them, and taking them away.
//
// What does not belong here: the choice of names (fsview), the mounts that make a placeholder a deny (fsview, ns), and
// the choice between this package and the broker (runtime).
//
// # What is made
//
// A name is stood for by the outermost part of its path that is missing: a file, empty and of mode 0444, or a directory,
// empty and of mode 0555, when the name is a directory's or lies deeper (a missing parent is an empty read-only
// directory, FS-33). So placeholders never lie in one another. The caller has to deny what [Session.Placeholders] says,
// not the names it asked for.
//
// A commondir in a git directory is not empty but says ".", which is what git assumes without one: an empty one stops git
// on the host (FS-53). Lock files of git cannot be stood for at all (ErrMeaning).
//
// A placeholder is a real file of the host for as long as it is needed: "git status" lists an untracked empty file
// (an empty directory is not listed), "git add -A" adds it. That is what the broker exists to avoid.
//
// # The journal
//
// The state directory belongs to one user, has mode 0700 and holds two files. It must be hidden from every sandbox, not
// only write-denied: whoever can open the lock file for reading can hold up other starts (they fail, ErrBusy) and the
// removal of placeholders.
//
//	journal   lines "make" (fsync'ed before the object exists), "made" (what it is), "drop"; a checksum each
//	lock      open file description locks: byte 0 is held while the journal or a placeholder changes; the byte of
//	          a record's number is held shared by every session that relies on it
//
// One placeholder goes through these states; a crash or a power cut may come between any two:
//
//	make line written and synced
//	object made, owner-writable and with the sticky bit, which no ordinary empty file of the name has
//	marked: extended attribute user.srt.placeholder = the random mark of the make line
//	text written, where there is one
//	(only where there are no extended attributes: made line written and synced)
//	final mode set; made line written: device, inode, times, owner
//	... relied on by one session or several ...
//	the last one's exit, or the next start: proven by mark, inode, birth time, times, owner, size; moved aside under a
//	name of its own and proven once more (so that a file put there meanwhile is never lost); unlinked
//	directory synced
//	drop line written; a journal in which nothing is alive is emptied
//
// Only an object that is proven to be the one in the journal, unchanged and empty, is removed. Anything else at its name
// is left alone and the record forgotten. A directory that cannot be reached or is not the recorded one (a volume that is
// not mounted, a project that was moved) keeps its records for 30 days.
//
// # Locks
//
// The kernel drops the locks of a process that dies, SIGKILL included. No process watches: the next start (Sweep, and
// Hold itself) removes what a dead session left. The lock belongs to an open file description, so a copy of the descriptor
// of [Session.File] in pid 1 of the sandbox keeps the names for as long as the sandbox lives, not only srt.
//
// Users do not share a state directory. A placeholder of another user, or of another state directory, is recognised by
// its mark and is an error (ErrForeign): its owner could take it away at any time.
//
// # What a caller does, in this order
//
//	state, err := placeholder.DefaultState(os.Getenv, os.Geteuid())  // hidden in every plan, fallback or not
//	err = placeholder.Sweep(state)                                   // a warning when it fails
//	others, err := placeholder.List(state)                           // those beneath a write root: write-denied, so that
//	                                                                 // this command cannot lift a neighbour's deny
//	plan -> names that do not exist                                  // none, and no others: go on without this package
//	session, err := placeholder.Hold(state, names)                   // an error stops the start
//	plan again, with session.Placeholders() denied in place of the names (read-only, or hidden for a read deny)
//	err = session.Adopt(denied)                                      // every path that the second plan denies; ErrChanged:
//	                                                                 // release, and begin again
//	start; pid 1 keeps session.File()
//	wait until the last process of the sandbox is gone
//	err = session.Release()
//
// Of an Absent of a plan it is enough to name Dir and Name, a directory when Path goes on beneath. When Hold fails with an
// error of the system, the directory cannot be written now, but the command could make it so: the start must fail.
//
// Patterns cannot be held this way: they name no single path. The caller says so, or refuses to start (FS-55).
//
// # Limits
//
// A process outside of every sandbox can remove a placeholder, and with it the deny of a running sandbox. So can a
// sandbox that was started earlier, under rules that let it write the directory. Pid 1 ends every other
// process before it lets go of the lock; only where pid 1 itself is killed, together with srt, is the lock free a few
// microseconds before the last process is gone. In that time another start could remove the name.
//
// In a sandbox in a sandbox the state directory is hidden by the outer one, so the inner srt keeps its journal in memory.
// When both are killed nothing remembers the inner one's placeholders; [Session.Volatile] says so beforehand.
//
// File systems without modes (FAT) hold no placeholders: making one is an error.
package placeholder
