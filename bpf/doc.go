// Package bpf has the kernel refuse the creation of denied names that do not exist (FS-30), by a program in each hook that
// such a creation goes through: where the BPF security module is active and this process may load programs. Elsewhere
// [Supported] says why not, and [Choose] answers with the broker (seccomp/broker). And it reads from the kernel which system
// calls failed in a sandbox ([Tracer], VIO-10); where it may not, [TracingSupported] says why.
//
// What belongs here: the programs and their objects (programs), loading them, the rules of each sandbox in their maps, and
// the readers of what they refused and of what failed. What does not: which names are denied and whether a rule is behind a
// failure (fsview), and starting sandboxes (ns).
//
//	host side                         kernel                                     a process of a sandbox
//	Load           -----------------> six hooks, for the whole host
//	Session, Add   -----------------> sessions: user namespace -> session        mkdir("d/new")
//	                                  dirs: session, directory -> token    <---- hook: session of the caller? directory d
//	                                  names: token, name -> rule                 with rules? name with a rule?
//	Report         <----------------- refusals (a ring buffer)             ----> EROFS
//	Close          -----------------> its rules are gone
//
// A process belongs to a session by its user namespace, or by one that holds it: nothing inside can enter a user
// namespace above its own. The kernel tells directories apart by superblock and inode number as it has them itself, which
// a program of the same object finds out, since stat(2) may tell others. Processes outside of every sandbox pay a few
// nanoseconds for each name they create, and a process keeps to one [Enforcer], as the kernel takes 38 programs in a hook.
//
// # The tracer
//
//	host side                         kernel                                     a process of a sandbox
//	LoadTracer     -----------------> one program; calls: number -> arguments
//	Trace          -----------------> traced: user namespace -> trace            open("x") = EROFS
//	use(Refused)   <----------------- events (a ring buffer)               <---- the return of the call: sandbox of the
//	false: no rule -----------------> misses: what is not told again             caller? a call of the list? an error of one?
//	Trace.Close    -----------------> it is gone
//
// The program sees each system call of the host return, from the first Trace on until a second after the last. It knows the
// calls by a table that the loader fills for its architecture, and finds the arguments in struct pt_regs by the name of its
// members, of which the kernel knows those of one architecture alone. A record holds the way from a directory to the root,
// name by name, and the string of the caller; package runtime follows the links and asks whether a rule is behind it.
//
// # How the programs are made and loaded
//
// build/bpf.sh compiles programs/*.bpf.c; the objects are committed. They are loaded by bpf(2) itself, and the kernel
// relocates them to its own structures. github.com/cilium/ebpf, which would do all of that, adds 0.2 ms to every start of
// srt and reads all type information of the kernel for each load (95 ms, where all of [Load] takes 15): tests use it, to
// check the reader of objects. Nothing happens before [Load] or [Supported] is called. An Enforcer is for a process that
// starts many commands, since loading takes as long as a few cold starts.
//
// The programs are under MIT or GPL-2.0, at your choice, other than the rest of srt: the kernel lends the functions they
// need to programs under a licence compatible with its own alone.
//
// # Limits
//
// Patterns and reads are the broker's (see [Choose]). A directory that ioctl(2) makes, as btrfs does for subvolumes, goes
// through no hook. The hooks last as long as their links are open: a sandbox that is to keep its rules when this process
// is killed must hold copies ([Enforcer.Links]).
package bpf

//go:generate ../build/bpf.sh
