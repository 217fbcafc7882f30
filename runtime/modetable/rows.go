package modetable

// held are the cells of what is the same everywhere.
var (
	held     = Cell{Verdict: Held}
	noEffect = Cell{Verdict: NoEffect}
	always   = [3]Cell{held, held, held}
	never    = [3]Cell{noEffect, noEffect, noEffect}
)

// confined is a row's cells where mode confined alone is another.
func confined(v Verdict, text string) [3]Cell { return [3]Cell{held, held, {v, text}} }

func differs(text string) Cell { return Cell{Differs, text} }

var rows = []Row{
	{ID: "hosts", What: "which hosts may be reached", Settings: []string{"network.allowedDomains", "network.deniedDomains", "network.deniedDomainReasons",
		"network.strictAllowlist", "network.deniedResolvedAddresses"},
		Cells: confined(Differs, "for programs that use the proxies which the proxy variables name. Whatever else connects is refused and reported (EACCES); on the loopback it finds nobody listening (ECONNREFUSED), which is not reported")},
	{ID: "unix-sockets", Settings: []string{"network.allowUnixSockets"}, Cells: always},
	{ID: "all-unix-sockets", Settings: []string{"network.allowAllUnixSockets"},
		Cells: confined(Differs, "abstract sockets of the host are reachable too, since there is no network namespace")},
	{ID: "local-binding", Settings: []string{"network.allowLocalBinding"}, Cells: [3]Cell{
		{NoEffect, "the loopback inside is the sandbox's own, and programs can always listen there"}, {NoEffect, "as in full"},
		differs("without it nothing listens; with it, programs listen on loopback addresses of the host, where every process of the machine can connect, and connect to their own listeners")}},
	{ID: "host-proxies", Settings: []string{"network.httpProxyPort", "network.socksProxyPort"}, Cells: always},
	{ID: "requests", What: "what may be asked of hosts, and how they are reached", Settings: []string{"network.mitmProxy.socketPath", "network.mitmProxy.domains",
		"network.parentProxy.http", "network.parentProxy.https", "network.parentProxy.noProxy", "network.allowPlaintextHeaderSet",
		"network.refuseOpaqueTunnels", "network.requireHostMatch", "network.stripResponseHeaders", "network.ambiguousRequestTarget", "network.requestRules",
		"network.tlsTerminate", "network.tlsTerminate.caCertPath", "network.tlsTerminate.caKeyPath", "network.tlsTerminate.excludeDomains",
		"network.tlsTerminate.extraCaCertPaths", "network.tlsTerminate.maxTunnels", "network.tlsTerminate.handshakeTimeoutMs"}, Cells: always},
	{ID: "files-disabled", Settings: []string{"filesystem.disabled"},
		Cells: confined(Differs, "the host's own `/dev`, `/proc` and `/sys` stay protected, of `/dev` all but `/dev/shm`")},
	{ID: "deny-read", What: "what may not be read", Settings: []string{"filesystem.denyRead", "filesystem.allowRead"},
		Cells: confined(Partly, "outside of what `allowWrite` grants it is held: contents and listings are refused (EACCES), names and attributes show. "+
			"[More](#reading-in-mode-confined). Refused: `hide-in-write-root`, `hide-in-proc`, `hide-in-shm`, `hide-twice-shown`, `hide-unlisted`, `hide-many`")},
	{ID: "write-rules", What: "what may be written", Settings: []string{"filesystem.allowWrite", "filesystem.denyWrite", "filesystem.allowGitConfig",
		"mandatoryDenySearchDepth"},
		Cells: confined(Differs, "the broker decides about every change by where the file lies, with the same errors. A rename may lead from one granted place into another. Each change takes some tens of microseconds")},
	{ID: "credential-files", What: "files that are denied or masked", Settings: []string{"credentials.files[].path", "credentials.files[].mode", "credentials.files[].maskDuplicates"},
		Cells: confined(Partly, "`deny` is as `denyRead`. Refused: `mask`, since no file can show another content")},
	{ID: "credentials", What: "variables, and what becomes of their values", Settings: []string{"credentials.envVars[].mode", "credentials.envVars[].name", "credentials.allowPlaintextInject",
		"credentials.awsPairs[].accessKeyIdVar", "credentials.awsPairs[].secretAccessKeyVar", "credentials.awsPairs[].sessionTokenVar", "credentials.sigv4.streaming",
		"credentials.sigv4.presigned", "credentials.sigv4.sigv4a", "credentials.extract", "credentials.onExtractNoMatch", "credentials.decode",
		"credentials.maskClaims", "credentials.injectHosts"}, Cells: always},
	{ID: "weaker", Settings: []string{"enableWeakerNestedSandbox"}, Cells: [3]Cell{noEffect,
		differs("processes of the surrounding container show in `/proc`, and no opening is put to srt for their sake, unless `allowNestedUserNamespaces` is set and system calls can be put to srt"),
		differs("without it no command is started in this mode")}},
	{ID: "nested-user-namespaces", Settings: []string{"allowNestedUserNamespaces"}, Cells: confined(NoEffect, "a command makes no namespaces, which allows less than the key asks for")},
	{ID: "violations", Settings: []string{"ignoreViolations"}, Cells: always},
	{ID: "programs", Settings: []string{"javaAgentJarPath", "git.safeDirectories"}, Cells: always},
	{ID: "other-systems", What: "keys of other systems", Settings: []string{"network.allowMachLookup", "enableWeakerNetworkIsolation", "allowAppleEvents", "allowPty"}, Cells: never},

	{ID: "mask", What: "a file that shows another content", Cells: confined(Refused, "deny the file, or mask a variable instead")},
	{ID: "hide-in-write-root", What: "something in a granted place that cannot be read", Cells: confined(Refused, "Landlock grants reading to all of a directory: name the directories beside it in `allowWrite`, or deny writing alone")},
	{ID: "hide-in-proc", What: "a part of `/proc` that cannot be read", Cells: confined(Refused, "deny `/proc` as a whole, or nothing in it")},
	{ID: "hide-in-shm", What: "a part of `/dev/shm` that is denied, while `/dev/shm` is granted", Cells: confined(Refused, "take one of the two entries out")},
	{ID: "hide-twice-shown", What: "a directory that is denied under one path and shown by a mount under another", Cells: confined(Refused, "deny both paths, or neither")},
	{ID: "hide-unlisted", What: "something denied in a directory that you may not list", Cells: confined(Refused, "deny that directory")},
	{ID: "hide-many", What: "something denied beside more than some thousand names", Cells: confined(Refused, "deny the directory around it")},

	{ID: "names-beside-hidden", What: "directories above something that cannot be read", Cells: confined(Differs, "they cannot be listed, if it is a directory; what comes to lie in them after the start, or is replaced there, cannot be read. In `/` that is so in any case")},
	{ID: "hidden-writable", What: "a hidden directory, to write in", Cells: confined(Differs, "refused (EACCES); elsewhere it is an empty directory in memory")},
	{ID: "attributes", What: "names, attributes and links of what cannot be read: `stat`, `access`, `readlink`, `getxattr`, `chdir`, `statfs`, `inotify`", Cells: confined(Differs, "they show, as the host shows them to the user. What asks `access` first takes a denied file for a broken one: git does not start while `~/.gitconfig` is denied, unless `GIT_CONFIG_GLOBAL=/dev/null` is set")},
	{ID: "locks", What: "locks (`flock`, `fcntl`) on what can be opened", Cells: always},
	{ID: "streams", What: "a standard stream that is a file of the host", Cells: confined(Differs, "it can be used as it was opened; opening it again is judged by where the file lies")},
	{ID: "private-files", What: "srt's own files and those of its caller, which are hidden", Cells: confined(Differs, "they cannot be opened; their names show. In a granted place the broker refuses that, for which it judges every opening")},
	{ID: "dev", What: "`/dev`", Cells: confined(Differs, "the host's, with its names; `null`, `zero`, `full`, `random`, `urandom`, `tty`, `ptmx` and the terminals in `pts` alone can be opened. Terminals of the same user, and as root of every user, are among them")},
	{ID: "dev-elsewhere", What: "device files in other places", Cells: confined(Differs, "cannot be written to; root can read them, where their file system allows devices")},
	{ID: "dev-shm", What: "`/dev/shm`", Cells: confined(Differs, "the host's, which can be written to only where `allowWrite` names it, as locks and shared memory of `multiprocessing` in Python need")},
	{ID: "proc-list", What: "processes of others in `/proc`", Cells: [3]Cell{held,
		differs("their numbers show; to open anything of theirs is refused (ENOENT), for which each opening is put to srt, unless `enableWeakerNestedSandbox` is set"),
		differs("their command lines, states and names show, as to the user without a sandbox; memory, environment, descriptors and links of theirs are refused (Landlock)")}},
	{ID: "proc-numbers", What: "process numbers", Cells: [3]Cell{held, differs("those in `/proc` are the container's, those of system calls the sandbox's own. A program that asks for `/proc/<its own number>` without opening it, as `ps` does, finds nothing, or another process; `pgrep`, `top` and `/proc/self` work"), differs("the host's")}},
	{ID: "proc-write", What: "writing to a process's own entries in `/proc` (`comm`, `oom_score_adj`)", Cells: [3]Cell{held, differs("refused (EROFS). With `allowNestedUserNamespaces` it is held, for id maps; where also `enableWeakerNestedSandbox` is set and no system call can be put to srt (srt inside srt), entries of the same user's other processes in that `/proc` can be written as well"), differs("`comm`, `oom_score_adj` and `coredump_filter` can be written by the process itself; the rest, and those of other processes of the sandbox, are refused (EACCES)")}},
	{ID: "kernel-state", What: "kernel state in `/proc` and `/sys`", Cells: confined(Differs, "cannot be changed; can be read as far as the user may without a sandbox, but `/sys/firmware`, `/sys/kernel/debug` and the like not by root")},
	{ID: "signals", What: "signals to processes outside", Cells: confined(Differs, "refused (EPERM) by a Landlock scope rather than without such a process (ESRCH)")},
	{ID: "end", What: "the end of all processes with the command", Cells: confined(Differs, "by two supervisors rather than a pid namespace; nothing is left unless somebody outside kills both at one instant, and what is left then stays held")},
	{ID: "ipc", What: "System V IPC and POSIX message queues", Cells: confined(Differs, "refused (ENOSYS), even among the command's own processes")},
	{ID: "other-processes", What: "calls on other processes by number (`prlimit`, `sched_setaffinity`, `setpriority`)", Cells: confined(Differs, "srt makes them for processes of the sandbox, and refuses others")},
	{ID: "direct", What: "programs that ignore the proxy variables", Cells: confined(Differs, "reach nothing; elsewhere their connections are captured and judged")},
	{ID: "datagrams", What: "UDP", Cells: confined(Differs, "no such socket can be made (EPERM); elsewhere one can, and what it sends is refused")},
	{ID: "lookups", What: "looking up names of hosts", Cells: confined(Differs, "the proxies do; programs cannot, since UDP is refused. Elsewhere a resolver inside answers")},
	{ID: "loopback", What: "the loopback", Cells: confined(Differs, "the host's, of which the command reaches its own proxies and, with `allowLocalBinding`, its own listeners")},
	{ID: "host-names", What: "host name, mount table, cgroup, routes and addresses as the command sees them", Cells: confined(Differs, "the host's")},
	{ID: "root", What: "what root keeps of its capabilities", Cells: confined(Differs, "the same list, but in the host's user namespace: each change is judged, and nothing is granted that the list does not name")},
	{ID: "namespaces", What: "namespaces and mounts of a command's own", Cells: always},
	{ID: "kernel-observer", What: "refusals that the kernel reports", Cells: confined(Differs, "the broker tells of them, to which the calls are put; elsewhere a program in the kernel can, which makes them faster")},
}
