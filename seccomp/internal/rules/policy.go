package rules

const (
	cloneNewNS   = 0x00020000
	cloneNewUser = 0x10000000
	// unshareEmptyMntNS asks unshare for an empty mount namespace on kernels that know it; in clone the same bit is
	// the old CLONE_PARENT_SETTID, which every thread library sets.
	unshareEmptyMntNS = 0x00100000
)

// namespaces is NET-83. It goes with allowNestedUserNamespaces.
var namespaces = Filter{
	Name: "namespaces",
	Rules: []Rule{
		{Call: "unshare", When: []Cond{{0, cloneNewUser, cloneNewUser}}, Text: "flags & CLONE_NEWUSER", Errno: EPERM,
			Why: "a new user namespace holds every capability, and most of the kernel's surface needs just one"},
		{Call: "unshare", When: []Cond{{0, cloneNewNS, cloneNewNS}}, Text: "flags & CLONE_NEWNS", Errno: EPERM,
			Why: "a new mount namespace can take the sandbox's mounts apart"},
		{Call: "unshare", When: []Cond{{0, unshareEmptyMntNS, unshareEmptyMntNS}}, Text: "flags & 0x00100000",
			Errno: EPERM, Why: "newer kernels: a new, empty mount namespace"},
		{Call: "clone", When: []Cond{{0, cloneNewUser, cloneNewUser}}, Text: "flags & CLONE_NEWUSER", Errno: EPERM,
			Why: "as unshare"},
		{Call: "clone", When: []Cond{{0, cloneNewNS, cloneNewNS}}, Text: "flags & CLONE_NEWNS", Errno: EPERM,
			Why: "as unshare"},
		// Attack 41. ENOSYS, not EPERM: C libraries then fall back to clone, whose flags are in a register.
		{Call: "clone3", Errno: ENOSYS, Why: "its flags are in memory, where no filter can read them"},
		{Call: "setns", Errno: EPERM, Why: "enters a namespace outside the sandbox"},
		{Call: "mount", Errno: EPERM, Why: "changes what paths mean"},
		{Call: "umount2", Errno: EPERM, Why: "uncovers what a mount hides"},
		{Call: "pivot_root", Errno: EPERM, Why: "changes what paths mean"},
		// Attack 40: CVE-2021-41133.
		{Call: "open_tree", Errno: EPERM, Why: "new mount API: copies a mount"},
		{Call: "open_tree_attr", Number: 467, Errno: EPERM, Why: "new mount API: copies a mount with other attributes"},
		{Call: "move_mount", Errno: EPERM, Why: "new mount API: attaches a mount"},
		{Call: "fsopen", Errno: EPERM, Why: "new mount API: makes a file system"},
		{Call: "fsconfig", Errno: EPERM, Why: "new mount API: configures a file system"},
		{Call: "fsmount", Errno: EPERM, Why: "new mount API: makes a mount"},
		{Call: "fspick", Errno: EPERM, Why: "new mount API: reconfigures a mounted file system"},
		{Call: "mount_setattr", Errno: EPERM, Why: "new mount API: makes a read-only mount writable"},
	},
}

// A datagram socket sends to any path that sendto names, so both unix filters refuse one where it is made: by
// socketpair too, whose halves can be connected elsewhere later (attack 85). The kernel makes an AF_UNIX socket of
// type SOCK_RAW a datagram socket (unix(7); unix_create in net/unix/af_unix.c), so the two types are one.
var (
	unixPairDgram = Rule{Call: "socketpair", When: []Cond{{0, low32, afUnix}, {1, sockTypeMask, sockDgram}},
		Text: "domain = AF_UNIX, type = SOCK_DGRAM", Errno: EPERM,
		Why: "each half can send to any socket that a path names"}
	unixPairRaw = Rule{Call: "socketpair", When: []Cond{{0, low32, afUnix}, {1, sockTypeMask, sockRaw}},
		Text: "domain = AF_UNIX, type = SOCK_RAW", Errno: EPERM,
		Why: "the kernel takes it for SOCK_DGRAM"}
	vsock = Rule{Call: "socket", When: []Cond{{0, low32, afVsock}}, Text: "domain = AF_VSOCK", Errno: EPERM,
		Why: "reaches the hypervisor; no network namespace parts it"}
)

// unix is NET-81's refusal of every AF_UNIX socket, for sandboxes in which no broker judges connect.
func unix() Filter {
	return Filter{
		Name: "unix",
		Rules: []Rule{
			{Call: "socket", When: []Cond{{0, low32, afUnix}}, Text: "domain = AF_UNIX", Errno: EPERM,
				Why: "a path leads to daemons of the host, past the network namespace"},
			vsock, unixPairDgram, unixPairRaw,
		},
	}
}

// unixDatagram is what remains of unix where a broker judges connect: the sockets that need no connect to send.
func unixDatagram() Filter {
	return Filter{
		Name: "unix-datagram",
		Rules: []Rule{
			{Call: "socket", When: []Cond{{0, low32, afUnix}, {1, sockTypeMask, sockDgram}},
				Text: "domain = AF_UNIX, type = SOCK_DGRAM", Errno: EPERM,
				Why: "sends to any path without a connect that the broker could judge"},
			{Call: "socket", When: []Cond{{0, low32, afUnix}, {1, sockTypeMask, sockRaw}},
				Text: "domain = AF_UNIX, type = SOCK_RAW", Errno: EPERM,
				Why: "the kernel takes it for SOCK_DGRAM"},
			vsock, unixPairDgram, unixPairRaw,
		},
	}
}
