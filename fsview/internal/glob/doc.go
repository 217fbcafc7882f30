// Package glob matches path names against the patterns of path lists (FS-12 to FS-14).
//
// The language, over names that are bytes: `*` is any run without a slash, `?` one character but a slash, `[abc]` and
// `[a-z]` one character of a set, `**` with a slash after it any number of directories, and `**` elsewhere any run.
// Nothing escapes and nothing fails to compile: what makes no sense as a set is text. A character is one UTF-8 encoded
// code point, or one byte where the bytes are not valid UTF-8.
//
// What belongs here: compiling a pattern, matching, and telling what is left to match beneath a directory, which is what
// a walk of the disk needs so as to list no directory in vain. What does not belong here: the disk, and how an entry of
// the settings becomes a pattern (runtime/policy, fsview).
//
// Everything is pure. A *Pattern and a States are immutable and safe for concurrent use.
package glob
