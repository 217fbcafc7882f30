package rules

// confined is for sandboxes without namespaces (mode confined): it refuses what the namespaces of another mode would part
// from the host, and that neither Landlock nor the broker judges. ENOSYS is what a kernel built without System V IPC or
// POSIX message queues says, which programs go on from.
//
// Left open: whatever acts upon another process after the kernel's check for ptrace, in which Landlock takes part
// (ptrace, process_vm_readv, process_madvise, pidfd_getfd, kcmp, move_pages, migrate_pages, get_robust_list), signals,
// which Landlock scopes, process_mrelease, which takes a process that is dying already, and what needs a capability that no
// command has (sethostname, unshare and clone of other namespaces). Calls on processes by number are the business of
// changes.
func confined() Filter {
	const ipc = "the System V IPC of the host's namespace: other processes' memory, semaphores and queues"
	const queue = "the POSIX message queues of the host's namespace"
	var rules []Rule
	for _, call := range [...]string{"shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl"} {
		rules = append(rules, Rule{Call: call, Errno: ENOSYS, Why: ipc})
	}
	for _, call := range [...]string{"mq_open", "mq_unlink"} {
		rules = append(rules, Rule{Call: call, Errno: ENOSYS, Why: queue})
	}
	return Filter{Name: "confined", Rules: rules}
}
