package broker

import "golang.org/x/sys/unix"

// olderSteps are those of calls that newer architectures have not.
func olderSteps() []observedStep {
	step := func(name string, number uintptr, want, path string, args ...uintptr) observedStep {
		return observedStep{name, func(f string) { raw(number, append([]uintptr{cstr(f + path)}, args...)...) }, []string{name + " " + want + " " + path}, nil}
	}
	reads := func(name string, number uintptr, path string, args ...uintptr) observedStep {
		s := step(name, number, "read", path, args...)
		s.want, s.reads = nil, s.want
		return s
	}
	return []observedStep{
		step("open", unix.SYS_OPEN, "write", "/ro/file", unix.O_RDWR), step("open", unix.SYS_OPEN, "create", "/ro/new", unix.O_CREAT),
		reads("open", unix.SYS_OPEN, "/hid/x", 0), reads("readlink", unix.SYS_READLINK, "/hid/x", cstr("room"), 4),
		step("creat", unix.SYS_CREAT, "create", "/ro/new", 0o600), step("creat", unix.SYS_CREAT, "write", "/ro/file", 0o600),
		step("mkdir", unix.SYS_MKDIR, "create", "/ro/new", 0o755), step("mknod", unix.SYS_MKNOD, "create", "/ro/new", unix.S_IFREG|0o644, 0),
		{"symlink", func(f string) { raw(unix.SYS_SYMLINK, cstr("x"), cstr(f+"/ro/new")) }, []string{"symlink create /ro/new"}, nil},
		{"link", func(f string) { raw(unix.SYS_LINK, cstr(f+"/ro/file"), cstr(f+"/ro/new")) }, []string{"link create /ro/new"}, nil},
		{"rename", func(f string) { raw(unix.SYS_RENAME, cstr(f+"/ro/file"), cstr(f+"/ro/new")) },
			[]string{"rename remove /ro/file", "rename create /ro/new"}, nil},
		step("unlink", unix.SYS_UNLINK, "remove", "/ro/file"), step("rmdir", unix.SYS_RMDIR, "remove", "/ro/sub"),
		step("chmod", unix.SYS_CHMOD, "write", "/ro/file", 0o600), step("chown", unix.SYS_CHOWN, "write", "/ro/file", 0, 0),
		step("lchown", unix.SYS_LCHOWN, "write", "/ro/link", 0, 0), step("utime", unix.SYS_UTIME, "write", "/ro/file", 0),
		step("utimes", unix.SYS_UTIMES, "write", "/ro/file", 0),
		{"futimesat", func(f string) { raw(unix.SYS_FUTIMESAT, cwdFD, cstr(f+"/ro/file"), 0) }, []string{"futimesat write /ro/file"}, nil},
	}
}
