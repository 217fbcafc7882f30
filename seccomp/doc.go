// Package seccomp holds the system call filters of a sandbox.
//
// What belongs here: the rules, their generator (libseccomp, at build time only), the generated BPF for each
// architecture, and a simulator with which tests compare the BPF to a plain statement of the rules.
//
// What does not belong here: starting processes and loading the filters (ns, whose launch program carries
// [Filter.Program] into the child), answering notifications (seccomp/broker), and the choice of filters for a given settings file (runtime).
//
// The filters are independent of each other and stack. The kernel runs every filter of a process on every system call
// and obeys the strictest answer, so the order of loading decides nothing. Once loaded they cannot be taken off, and
// every descendant inherits them.
//
//	base           always
//	namespaces     unless allowNestedUserNamespaces
//	unix           unless allowAllUnixSockets, where no broker watches connect
//	unix-datagram  unless allowAllUnixSockets, where a broker watches connect
//	ioctl-names    while names are denied that do not exist, where the kernel's hooks refuse them (package bpf)
//	names          while names are denied that do not exist, where they do not
//	opens          in place of names, while reads are denied that no mount can hide
//	network        while connections are captured: programs reach the allowed hosts by their own connect
//	observe-writes while refused writes are reported and no tracer in the kernel tells of them
//	observe-all    in place of observe-writes, while refused reads are reported as well
//	changes        in mode confined, where no mount holds anything: in place of names
//	confined       in mode confined, where there is no IPC namespace
//
// # Filters that notify
//
// names, opens, changes and network put calls to a broker (SECCOMP_RET_USER_NOTIF, seccomp_unotify(2)): package seccomp/notify is the
// protocol, seccomp/broker the answering. What these let pass they decide from registers alone, so that the answer to
// such a call never depends on memory that another thread can change. The kernel takes one listener for each process:
// a further filter that notifies is joined with these by [Stack], which gives one program for one listener.
//
// The two that observe decide nothing: each of their calls goes on, with the arguments that it has by then, whether or not
// it could be looked at. They hold nobody back, and a report of theirs is no more than a report.
//
// names and opens also tell the broker of every call that changes a thread's umask, ids, groups or capabilities, which it lets go on:
// so it need not ask before each call what they are. changes tells it as well.
//
// # How a filter is made
//
// internal/rules states the rules as data. internal/generate (build tag generate, needs cgo and libseccomp 2.5 or
// newer) gives them to libseccomp, puts what libseccomp cannot express in front (see there), and writes
// filters/NAME_ARCH.bpf. After a change to the rules run
//
//	go generate ./seccomp
//
// and commit the result; a test regenerates and compares.
//
// # How a filter is kept cheap
//
// Since Linux 5.11 the kernel works out at load time which system call numbers a filter allows whatever their
// arguments, and answers those from a bitmap without running the filter. So only numbers that appear in a rule with a
// condition run the filters: ioctl, socket, socketpair, clone, unshare, ptrace, under names also open and openat, under
// changes also what acts upon a process by its number, under
// network getsockopt, sendto, sendmsg and sendmmsg. They come first in each program. A sending so costs some 40 ns more.
// libseccomp's binary tree was measured and gains nothing here. BenchmarkFilters shows the cost beside that of a filter
// of one instruction, which is what the kernel takes for looking at all.
package seccomp

//go:generate go run -tags generate ./internal/generate -o filters
