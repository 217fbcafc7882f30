package ns

import "golang.org/x/sys/unix"

// listenerFlags make a filter's listener. WAIT_KILLABLE_RECV (Linux 5.19): once a call was received, nothing but a fatal
// signal takes its caller away from it, so no call is made twice because a signal arrived in between (seccomp(2)).
const listenerFlags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

// FilterWithListener appends a seccomp filter as Filter does, and gives its listener: a descriptor, close-on-exec, that
// answers the calls for which the filter says SECCOMP_RET_USER_NOTIF (seccomp_unotify(2)). no_new_privs comes before it.
//
// The program sends the listener to the host side (SendFiles) and closes it. From this step on, every process of the
// sandbox waits for the host side on such a call, pid 1 included: so no later step may make one, the sending itself
// included. When the last listener is closed while processes live, such calls fail with ENOSYS.
//
// The step fails with EBUSY where this process is under another listener, of which the kernel takes no second, and with
// EINVAL where the kernel is older than Linux 5.19. What to do then is the caller's to know.
func (p *Program) FilterWithListener(name string, program []byte) Slot {
	return p.filter("load the system call filter and its listener", name, program, listenerFlags)
}
