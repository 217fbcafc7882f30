// Package broker performs the name-creating system calls of a sandbox in its place, and with read rules every opening
// (FS-10, FS-30, FS-33, FS-55): a name that does not exist has nothing that a mount could cover, so such calls are judged
// one by one.
//
// What belongs here: taking calls from a listener (seccomp/notify), reading their arguments once, finding the directory
// that they mean, asking a [Judge], and having them performed by a [Hand]. What does not: the rules (fsview), the filter
// that says which calls come here (seccomp), and forking (ns).
//
//	caller                  worker (this process)                             hand (in the sandbox's namespaces)
//	openat(d, "a/b", ...) -> receive; read "a/b" and d's descriptor once;
//	  waits                 is the call still waiting?
//	                        b is suspect to no rule:           ----------->   umask, open a, create b in it
//	<------------------------------------------------------------------------ the new descriptor, with the answer
//	                        b may be refused: open a           ----------->   opens a
//	                        who is a, where is a? judge (a, b) <-----------   a descriptor of a
//	                        then the same in that very a       ----------->   create b
//
// In a sandbox without mounts of its own it performs every call that changes something, existing objects and attributes
// included, and a [ChangeJudge] decides by where the object lies. There the command's own Landlock domain lets it change nothing
// but devices, whose openings go on in the kernel.
//
// It also makes the connections of a sandbox whose network is restricted (NET-3 and the limits of the reference): a
// [Gate] judges, and connection says how a program's socket comes to its destination. An AF_UNIX socket is connected to
// a path of the sandbox's own or of [UnixRules].
//
//	caller                  worker                                            goroutine
//	connect(s, address) --> takes a copy of s; reads the address once;
//	                        datagram, or to the sandbox's loopback: the
//	                        kernel connects the copy
//	                        else: does the policy allow it?
//	<--- EACCES             no
//	                        yes                                   --------->  dials
//	<--- EINPROGRESS        s is non-blocking                                 joins s and the upstream, or tells s the error
//	<-----------------------------------------------------------------------  else: joins the two, and answers
//
// And it looks at the calls that the kernel may refuse, for a report ([Observation]). That is the one thing here that decides
// nothing: each such call goes on, with what its memory holds then.
//
// A call that was judged by a path or an address is never let go on by itself: its memory can change under it, and what a
// descriptor stands for. One on a path is performed on the descriptor of the directory that was judged, with a last name
// that is not followed. The hand acts with no more rights than the caller, so that a mistake here can at worst leave out a
// rule of this package, never one of the mounts or of Landlock. A connect is performed on the copy of the socket.
//
// Whatever fails unexpectedly fails the call (EACCES, EIO) and is reported. Nothing here stops a sandbox from ending.
package broker
