// Package notify is the protocol between a process that holds the listener of a seccomp filter and the kernel
// (seccomp_unotify(2), linux/seccomp.h): receive a call, see whether it still waits, answer it, give its caller a
// descriptor. And it says whether a listener can be had here at all ([Available]).
//
// What belongs here: the structures, the control calls, and what they mean for their user. What does not: loading
// filters (ns), the filters (seccomp), reading a caller's memory, judging and performing calls (seccomp/broker).
//
// One call goes this way:
//
//	caller                    kernel                          holder of the listener
//	mkdir("x")  ------------> filter says USER_NOTIF
//	  waits                   POLLIN  ----------------------> [Listener.Receive]: number, arguments, thread, id
//	                                                          reads the caller's memory, then
//	                          ID_VALID <--------------------- [Listener.Valid]: was it this caller's memory?
//	                                                          performs the call
//	-1, EEXIST  <------------ NOTIF_SEND <------------------- [Listener.Respond], or
//	 5          <------------ NOTIF_ADDFD with SEND <-------- an [AddFD]: the caller has a descriptor and its number
//
// A filter loaded with SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV lets nothing but a fatal signal end the wait once the call
// is received: what was performed is always answered, and nothing is performed twice.
//
// A listener must be kept open for as long as a process of its filter lives. When the last copy is closed those calls
// fail with ENOSYS, and the kernel then takes another listener from such a process, whose holder may let them pass.
package notify
