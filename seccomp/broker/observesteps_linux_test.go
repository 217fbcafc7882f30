package broker

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

func observedSteps() []observedStep {
	return slices.Concat(openSteps(), nameSteps(), attributeSteps(), pathSteps(), olderSteps())
}

func openSteps() []observedStep {
	how := func(f string, flags, resolve uint64) {
		h := unix.OpenHow{Flags: flags, Resolve: resolve}
		raw(unix.SYS_OPENAT2, cwdFD, cstr(f), uintptr(unsafe.Pointer(&h)), unsafe.Sizeof(h))
	}
	return []observedStep{
		{"write what is there", func(f string) { open1(f+"/ro/file", unix.O_WRONLY) }, []string{"openat write /ro/file"}, nil},
		{"write and read", func(f string) { open1(f+"/ro/file", unix.O_RDWR) }, []string{"openat write /ro/file"}, nil},
		{"empty by opening to read", func(f string) { open1(f+"/ro/file", unix.O_TRUNC) }, []string{"openat write /ro/file"}, nil},
		{"read", func(f string) { open1(f+"/ro/file", unix.O_RDONLY) }, nil, nil},
		{"look", func(f string) { open1(f+"/ro/file", unix.O_PATH|unix.O_RDWR) }, nil, nil},
		{"make", func(f string) { open1(f+"/ro/new", unix.O_WRONLY|unix.O_CREAT) }, []string{"openat create /ro/new"}, nil},
		{"make to read", func(f string) { open1(f+"/ro/new", unix.O_CREAT) }, []string{"openat create /ro/new"}, nil},
		{"make what is there", func(f string) { open1(f+"/ro/file", unix.O_WRONLY|unix.O_CREAT) }, []string{"openat write /ro/file"}, nil},
		{"make alone what is there", func(f string) { open1(f+"/ro/file", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) }, nil, nil},
		{"make alone", func(f string) { open1(f+"/ro/new", unix.O_RDWR|unix.O_CREAT|unix.O_EXCL) }, []string{"openat create /ro/new"}, nil},
		{"make a directory by opening", func(f string) {
			open1(f+"/ro/new/", unix.O_CREAT)
			raw(unix.SYS_MKNODAT, cwdFD, cstr(f+"/ro/p/"), unix.S_IFIFO)
		}, nil, nil},
		{"cut a directory short", func(f string) { raw(unix.SYS_TRUNCATE, cstr(f+"/ro"), 0) }, nil, nil},
		{"write what is not there", func(f string) { open1(f+"/ro/none", unix.O_WRONLY) }, nil, nil},
		{"make in what is not there", func(f string) { open1(f+"/ro/none/new", unix.O_WRONLY|unix.O_CREAT) }, nil, nil},
		{"write a directory", func(f string) { open1(f+"/ro", unix.O_WRONLY) }, nil, nil},
		{"list", func(f string) { open1(f+"/ro", unix.O_DIRECTORY) }, nil, nil},
		{"file without a name", func(f string) { open1(f+"/ro", unix.O_TMPFILE|unix.O_RDWR) }, []string{"openat write /ro"}, nil},
		{"file without a name, allowed", func(f string) { open1(f+"/w", unix.O_TMPFILE|unix.O_RDWR) }, nil, nil},
		{"allowed: write", func(f string) { open1(f+"/w/file", unix.O_RDWR) }, nil, nil},
		{"allowed: make and remove", func(f string) {
			open1(f+"/w/made", unix.O_CREAT|unix.O_WRONLY|unix.O_EXCL)
			must(unix.Unlink(f + "/w/made"))
		}, nil, nil},
		{"allowed: what is not there", func(f string) { open1(f+"/w/none", unix.O_RDONLY); open1(f+"/w/none/x", unix.O_CREAT) }, nil, nil},
		{"make what must not be", func(f string) { open1(f+"/w/absent", unix.O_WRONLY|unix.O_CREAT) },
			[]string{"openat create /w/absent"}, nil},
		{"hidden file in a hidden directory", func(f string) { open1(f+"/hid/secret", unix.O_RDONLY) }, nil,
			[]string{"openat read /hid/secret"}},
		{"hidden deeper", func(f string) { open1(f+"/hid/a/b/../c", unix.O_RDONLY) }, nil, []string{"openat read /hid/a/c"}},
		{"hidden directory", func(f string) { open1(f+"/hid", unix.O_DIRECTORY) }, nil, []string{"openat read /hid"}},
		{"hidden file", func(f string) { open1(f+"/hidden", unix.O_RDONLY) }, nil, []string{"openat read /hidden"}},
		{"write what is hidden", func(f string) { open1(f+"/hidden", unix.O_WRONLY) }, []string{"openat write /hidden"}, nil},
		{"write in what is hidden", func(f string) { open1(f+"/hid/x", unix.O_WRONLY) }, []string{"openat read /hid/x"}, nil},
		{"of the command's own in a hidden directory", func(f string) {
			open1(f+"/hid/own", unix.O_CREAT|unix.O_WRONLY)
			open1(f+"/hid/own", unix.O_RDWR)
			must(unix.Unlink(f + "/hid/own"))
		}, nil, nil},
		{"openat2", func(f string) { how(f+"/ro/file", unix.O_WRONLY, 0) }, []string{"openat2 write /ro/file"}, nil},
		{"openat2 to read", func(f string) { how(f+"/hid/x", 0, 0) }, nil, []string{"openat2 read /hid/x"}},
		{"openat2 within bounds", func(f string) {
			h := unix.OpenHow{Flags: unix.O_RDWR, Resolve: unix.RESOLVE_BENEATH}
			raw(unix.SYS_OPENAT2, uintptr(dirFD(f+"/ro")), cstr("sub/../file"), uintptr(unsafe.Pointer(&h)), unsafe.Sizeof(h))
			h.Resolve = unix.RESOLVE_IN_ROOT
			raw(unix.SYS_OPENAT2, uintptr(dirFD(f+"/ro")), cstr("/../file"), uintptr(unsafe.Pointer(&h)), unsafe.Sizeof(h))
		}, []string{"openat2 write /ro/file", "openat2 write /ro/file"}, nil},
		{"openat2 with a bad structure", func(string) { raw(unix.SYS_OPENAT2, cwdFD, cstr("x"), 1, 24) }, nil, nil},
	}
}

func nameSteps() []observedStep {
	at := func(f, dir string) uintptr { return uintptr(dirFD(f + dir)) }
	return []observedStep{
		{"mkdirat", func(f string) { raw(unix.SYS_MKDIRAT, cwdFD, cstr(f+"/ro/d"), 0o755) }, []string{"mkdirat create /ro/d"}, nil},
		{"mkdirat with a slash", func(f string) { raw(unix.SYS_MKDIRAT, cwdFD, cstr(f+"/ro/d//"), 0o755) }, []string{"mkdirat create /ro/d"}, nil},
		{"mkdirat of what is there", func(f string) { raw(unix.SYS_MKDIRAT, cwdFD, cstr(f+"/ro/sub"), 0o755) }, nil, nil},
		{"mkdirat of a dot", func(f string) { raw(unix.SYS_MKDIRAT, cwdFD, cstr(f+"/ro/."), 0o755) }, nil, nil},
		{"mkdirat in a hidden directory", func(f string) {
			must(unix.Mkdir(f+"/hid/d", 0o755))
			must(unix.Rmdir(f + "/hid/d"))
		}, nil, nil},
		{"mknodat", func(f string) { raw(unix.SYS_MKNODAT, cwdFD, cstr(f+"/ro/p"), unix.S_IFIFO|0o600, 0) }, []string{"mknodat create /ro/p"}, nil},
		{"symlinkat", func(f string) { raw(unix.SYS_SYMLINKAT, cstr("t"), at(f, "/ro"), cstr("l")) }, []string{"symlinkat create /ro/l"}, nil},
		{"linkat", func(f string) { raw(unix.SYS_LINKAT, cwdFD, cstr(f+"/ro/file"), at(f, "/ro"), cstr("l"), 0) },
			[]string{"linkat create /ro/l"}, nil},
		{"linkat of nothing", func(f string) { raw(unix.SYS_LINKAT, cwdFD, cstr(f+"/w/none"), at(f, "/ro"), cstr("l"), 0) }, nil, nil},
		{"unlinkat", func(f string) { raw(unix.SYS_UNLINKAT, at(f, "/ro"), cstr("file"), 0) }, []string{"unlinkat remove /ro/file"}, nil},
		{"unlinkat of a directory", func(f string) { raw(unix.SYS_UNLINKAT, at(f, "/ro"), cstr("sub"), unix.AT_REMOVEDIR) },
			[]string{"unlinkat remove /ro/sub"}, nil},
		{"unlinkat of nothing, which a read-only mount refuses first", func(f string) { raw(unix.SYS_UNLINKAT, at(f, "/ro"), cstr("none"), 0) },
			[]string{"unlinkat remove /ro/none"}, nil},
		{"unlinkat in nothing", func(f string) { raw(unix.SYS_UNLINKAT, at(f, "/ro"), cstr("none/x"), 0) }, nil, nil},
		{"unlinkat of nothing, allowed", func(f string) { raw(unix.SYS_UNLINKAT, at(f, "/w"), cstr("none"), 0) }, nil, nil},
		{"unlinkat of what is hidden", func(f string) { raw(unix.SYS_UNLINKAT, at(f, "/hid"), cstr("none"), 0) },
			[]string{"unlinkat read /hid/none"}, nil},
		{"VIO-10 renameat2 judges both", func(f string) {
			raw(unix.SYS_RENAMEAT2, cwdFD, cstr(f+"/ro/file"), cwdFD, cstr(f+"/ro/new"), 0)
		}, []string{"renameat2 remove /ro/file", "renameat2 create /ro/new"}, nil},
		{"renameat to a denied place", func(f string) { raw(unix.SYS_RENAMEAT, cwdFD, cstr(f+"/w/file"), cwdFD, cstr(f+"/ro/new")) },
			[]string{"renameat create /ro/new"}, nil},
		{"renameat from a denied place", func(f string) { raw(unix.SYS_RENAMEAT, cwdFD, cstr(f+"/ro/file"), cwdFD, cstr(f+"/w/new")) },
			[]string{"renameat remove /ro/file"}, nil},
		{"renameat over what is there", func(f string) { raw(unix.SYS_RENAMEAT, cwdFD, cstr(f+"/w/file"), cwdFD, cstr(f+"/ro/file")) },
			[]string{"renameat remove /ro/file"}, nil},
		{"renameat2 not over what is there", func(f string) {
			raw(unix.SYS_RENAMEAT2, cwdFD, cstr(f+"/w/file"), cwdFD, cstr(f+"/ro/file"), unix.RENAME_NOREPLACE)
		}, nil, nil},
		{"renameat2 exchanges", func(f string) {
			raw(unix.SYS_RENAMEAT2, cwdFD, cstr(f+"/ro/file"), cwdFD, cstr(f+"/ro/sub"), unix.RENAME_EXCHANGE)
		}, []string{"renameat2 remove /ro/file", "renameat2 remove /ro/sub"}, nil},
		{"renameat of nothing", func(f string) { raw(unix.SYS_RENAMEAT, cwdFD, cstr(f+"/w/none"), cwdFD, cstr(f+"/ro/new")) }, nil, nil},
		{"renameat allowed", func(f string) {
			must(unix.Rename(f+"/w/file", f+"/w/moved"))
			must(unix.Rename(f+"/w/moved", f+"/w/file"))
		}, nil, nil},
		{"renameat to what must not be", func(f string) {
			raw(unix.SYS_RENAMEAT, cwdFD, cstr(f+"/w/file"), cwdFD, cstr(f+"/w/absent"))
			_ = unix.Rename(f+"/w/absent", f+"/w/file") // where it is only observed, it is done
		},
			[]string{"renameat create /w/absent"}, nil},
	}
}

func attributeSteps() []observedStep {
	use := func(name string, number uintptr, path string, args ...uintptr) observedStep {
		return observedStep{name, func(f string) { raw(number, append([]uintptr{cwdFD, cstr(f + path)}, args...)...) }, []string{name + " write " + path}, nil}
	}
	plain := func(name string, number uintptr, path string, args ...uintptr) observedStep {
		return observedStep{name, func(f string) { raw(number, append([]uintptr{cstr(f + path)}, args...)...) }, []string{name + " write " + path}, nil}
	}
	fd := func(name string, number uintptr, args ...uintptr) observedStep {
		return observedStep{name, func(f string) {
			fd, err := unix.Open(f+"/ro/file", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			must(err)
			raw(number, append([]uintptr{uintptr(fd)}, args...)...)
			unix.Close(fd)
		}, []string{name + " write /ro/file"}, nil}
	}
	attr := []uintptr{cstr("user.x"), cstr("v"), 1, 0}
	return []observedStep{
		use("fchmodat", unix.SYS_FCHMODAT, "/ro/file", 0o600), use("fchmodat2", unix.SYS_FCHMODAT2, "/ro/file", 0o600, 0),
		use("fchownat", unix.SYS_FCHOWNAT, "/ro/link", 0, 0, unix.AT_SYMLINK_NOFOLLOW),
		use("utimensat", unix.SYS_UTIMENSAT, "/ro/file", 0, 0),
		plain("truncate", unix.SYS_TRUNCATE, "/ro/file", 0),
		plain("setxattr", unix.SYS_SETXATTR, "/ro/file", attr...), plain("lsetxattr", unix.SYS_LSETXATTR, "/ro/link", attr...),
		plain("removexattr", unix.SYS_REMOVEXATTR, "/ro/file", attr...), plain("lremovexattr", unix.SYS_LREMOVEXATTR, "/ro/link", attr...),
		use("setxattrat", unix.SYS_SETXATTRAT, "/ro/file", 0, attr[0], 0, 16), use("removexattrat", unix.SYS_REMOVEXATTRAT, "/ro/file", 0, attr[0]),
		fd("fchmod", unix.SYS_FCHMOD, 0o600), fd("fchown", unix.SYS_FCHOWN, 0, 0), fd("fsetxattr", unix.SYS_FSETXATTR, attr...),
		fd("fremovexattr", unix.SYS_FREMOVEXATTR, attr[0]), fd("utimensat", unix.SYS_UTIMENSAT, 0, 0, 0),
		{"fchmodat of nothing", func(f string) { raw(unix.SYS_FCHMODAT, cwdFD, cstr(f+"/ro/none"), 0o600) }, nil, nil},
		{"fchmodat of what is hidden", func(f string) { raw(unix.SYS_FCHMODAT, cwdFD, cstr(f+"/hid/x"), 0o600) },
			[]string{"fchmodat read /hid/x"}, nil},
		{"fchownat of a descriptor", func(f string) {
			raw(unix.SYS_FCHOWNAT, uintptr(dirFD(f+"/ro/sub")), cstr(""), 0, 0, unix.AT_EMPTY_PATH)
		}, []string{"fchownat write /ro/sub"}, nil},
		{"fchownat of the empty path", func(f string) { raw(unix.SYS_FCHOWNAT, uintptr(dirFD(f+"/ro")), cstr(""), 0, 0, 0) }, nil, nil},
		{"allowed: attributes", func(f string) {
			must(unix.Chmod(f+"/w/file", 0o600))
			must(unix.Fchmodat(unix.AT_FDCWD, f+"/w/file", 0o644, 0))
		}, nil, nil},
		{"execve", func(f string) { raw(unix.SYS_EXECVE, cstr(f+"/hid/prog"), 0, 0) }, nil, []string{"execve read /hid/prog"}},
		{"execve of nothing", func(f string) { raw(unix.SYS_EXECVE, cstr(f+"/w/prog"), 0, 0) }, nil, nil},
		{"execveat", func(f string) { raw(unix.SYS_EXECVEAT, uintptr(dirFD(f+"/hid")), cstr("prog"), 0, 0, 0) }, nil,
			[]string{"execveat read /hid/prog"}},
		{"readlinkat", func(f string) { raw(unix.SYS_READLINKAT, cwdFD, cstr(f+"/hid/l"), cstr("room"), 4) }, nil,
			[]string{"readlinkat read /hid/l"}},
		{"readlinkat allowed", func(f string) { raw(unix.SYS_READLINKAT, cwdFD, cstr(f+"/ro/link"), cstr("room"), 4) }, nil, nil},
		{"readlinkat of what is there", func(f string) { raw(unix.SYS_READLINKAT, cwdFD, cstr(f+"/hidden"), cstr("room"), 4) }, nil, nil},
		{"chdir", func(f string) { raw(unix.SYS_CHDIR, cstr(f+"/hid/d")) }, nil, []string{"chdir read /hid/d"}},
		{"chdir to what is there", func(f string) { raw(unix.SYS_CHDIR, cstr(f+"/hid")); must(unix.Chdir(f)) }, nil, nil},
	}
}

func pathSteps() []observedStep {
	long := strings.Repeat("x/", 2047) + "y" // 4,095 bytes and NUL
	return []observedStep{
		{"case16 without ..", func(f string) { open1("w/../ro/b", unix.O_WRONLY|unix.O_CREAT) }, []string{"openat create /ro/b"}, nil},
		{"case16 touch", func(f string) {
			must(unix.Chdir(f + "/ro"))
			open1("../ro/./sub/../file", unix.O_WRONLY)
			open1("sub/..//b", unix.O_WRONLY|unix.O_CREAT)
			must(unix.Chdir(f))
		}, []string{"openat write /ro/file", "openat create /ro/b"}, nil},
		{"relative to a descriptor", func(f string) {
			fd := dirFD(f + "/w")
			raw(unix.SYS_OPENAT, uintptr(fd), cstr("../ro/file"), unix.O_RDWR)
		}, []string{"openat write /ro/file"}, nil},
		{"relative to no descriptor", func(string) {
			raw(unix.SYS_OPENAT, 999, cstr("x"), unix.O_RDWR)
			raw(unix.SYS_OPENAT, ^uintptr(0), cstr("x"), unix.O_RDWR)
			raw(unix.SYS_FCHMOD, 999, 0)
		}, nil, nil},
		{"absolute, whatever the descriptor", func(f string) { raw(unix.SYS_OPENAT, 999, cstr(f+"/ro/file"), unix.O_RDWR) },
			[]string{"openat write /ro/file"}, nil},
		{"bad pointers", func(string) {
			for _, p := range []uintptr{0, 1, ^uintptr(0), 1 << 47} {
				raw(unix.SYS_OPENAT, cwdFD, p, unix.O_RDWR)
				raw(unix.SYS_RENAMEAT2, cwdFD, p, cwdFD, p, 0)
				raw(unix.SYS_LINKAT, cwdFD, p, cwdFD, p, 0)
				raw(unix.SYS_TRUNCATE, p, 0)
			}
		}, nil, nil},
		{"long paths", func(f string) {
			open1("ro/"+long, unix.O_WRONLY|unix.O_CREAT)          // too long
			open1("ro/"+long[:4096-4], unix.O_WRONLY|unix.O_CREAT) // as long as can be, nothing there
			open1("ro"+strings.Repeat("/", 4000)+"/long", unix.O_WRONLY|unix.O_CREAT)
			open1("ro/"+strings.Repeat("n", 256), unix.O_WRONLY|unix.O_CREAT) // no name is so long
		}, []string{"openat create /ro/long"}, nil},
		{"links", func(f string) {
			open1("w/to-file", unix.O_WRONLY)                // -> ../ro/file
			open1("w/to-ro/new", unix.O_WRONLY|unix.O_CREAT) // -> FOLDER/ro
			open1("w/dangling", unix.O_WRONLY|unix.O_CREAT)  // -> ../ro/nothing
			open1("w/dangling", unix.O_WRONLY)
			open1("w/dangling", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
			open1("w/to-file", unix.O_WRONLY|unix.O_NOFOLLOW)
			open1("w/loop", unix.O_WRONLY|unix.O_CREAT)
			open1("ro/link/x", unix.O_WRONLY|unix.O_CREAT) // through a file
		}, []string{"openat write /ro/file", "openat create /ro/new", "openat create /ro/nothing"}, nil},
		{"links that are the object", func(f string) {
			must(unix.Symlink("../ro/file", "w/own"))
			must(unix.Unlink("w/own"))
			raw(unix.SYS_UNLINKAT, cwdFD, cstr("ro/link"), 0)
		}, []string{"unlinkat remove /ro/link"}, nil},
		{"by way of /proc/self", func(f string) {
			fd := dirFD(f + "/ro")
			open1(fmt.Sprintf("/proc/self/fd/%d/file", fd), unix.O_WRONLY)
			open1(fmt.Sprintf("/proc/thread-self/fd/%d/new", fd), unix.O_WRONLY|unix.O_CREAT)
			open1("/proc/self/cwd/ro/file", unix.O_WRONLY)
			open1(fmt.Sprintf("/dev/fd/%d/file", fd), unix.O_WRONLY)
			open1(fmt.Sprintf("/proc/%d/root%s/ro/file", os.Getpid(), f), unix.O_WRONLY)
		}, []string{"openat write /ro/file", "openat create /ro/new", "openat write /ro/file", "openat write /ro/file", "openat write /ro/file"}, nil},
		{"what is nowhere", func(string) {
			r, w, err := os.Pipe()
			must(err)
			open1(fmt.Sprintf("/proc/self/fd/%d", w.Fd()), unix.O_WRONLY)
			r.Close()
			w.Close()
			open1("/dev/null", unix.O_RDWR)
		}, nil, nil},
		{"in a directory that is gone", func(f string) {
			must(unix.Mkdir(f+"/w/gone", 0o755))
			must(unix.Chdir(f + "/w/gone"))
			must(unix.Rmdir(f + "/w/gone"))
			open1("x", unix.O_WRONLY|unix.O_CREAT)
			must(unix.Chdir(f))
		}, nil, nil},
		{"a FIFO, which nobody waits at", func(string) { open1("ro/fifo", unix.O_WRONLY|unix.O_NONBLOCK) }, []string{"openat write /ro/fifo"}, nil},
	}
}
