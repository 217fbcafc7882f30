package broker

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// moreSituations are those that are not a call on a path alone.
func moreSituations() []situation {
	var list []situation
	add := func(name string, run func(r *recorder)) { list = append(list, situation{name, run}) }
	for _, umask := range []int{0, 0o022, 0o077, 0o777} {
		add(fmt.Sprintf("umask_%o", umask), func(r *recorder) {
			unix.Umask(umask)
			fd, err := unix.Open("new", unix.O_CREAT|unix.O_RDWR, 0o6777)
			r.fd("open", fd, err)
			r.err("mkdir", unix.Mkdir("newdir", 0o7777))
			r.err("mknod", unix.Mknod("newfifo", unix.S_IFIFO|0o777, 0))
			r.err("symlink", unix.Symlink("x", "newlink"))
			r.bind("newsocket")
		})
	}
	add("directory descriptor", dirfdSituation)
	add("bad pointers", pointerSituation)
	add("temporary file", temporarySituation)
	add("limit of descriptors", limitSituation)
	add("own descriptors", ownDescriptors)
	add("how structure", howSituation)
	add("resolve flags", resolveSituation)
	add("thread with its own directory", threadSituation)
	add("working directory is gone", func(r *recorder) {
		r.check(os.Mkdir("gone", 0o755))
		r.check(os.Chdir("gone"))
		r.check(os.Remove(r.dir + "/gone"))
		fd, err := unix.Open("new", unix.O_CREAT|unix.O_RDWR, 0o666)
		r.fd("open", fd, err)
		r.err("mkdir", unix.Mkdir("new", 0o777))
	})
	add("deep directories", deepSituation)
	add("sockets", socketSituation)
	add("sticky directory", stickySituation)
	add("old calls", oldCalls)
	return list
}

func dirfdSituation(r *recorder) {
	for _, flags := range []int{unix.O_RDONLY, unix.O_PATH} {
		dir, err := unix.Open("dir", flags|unix.O_DIRECTORY, 0)
		r.check(err)
		fd, err := unix.Openat(dir, fmt.Sprintf("new%d", flags), unix.O_CREAT|unix.O_WRONLY, 0o666)
		r.fd("openat", fd, err)
		fd, err = unix.Openat(dir, "../up", unix.O_CREAT|unix.O_WRONLY, 0o666)
		r.fd("openat", fd, err)
		r.err("mkdirat", unix.Mkdirat(dir, fmt.Sprintf("dir%d", flags), 0o777))
		r.err("renameat", unix.Renameat(dir, "inner", unix.AT_FDCWD, "outer"))
		r.err("linkat", unix.Linkat(unix.AT_FDCWD, "file", dir, fmt.Sprintf("link%d", flags), 0))
		r.check(unix.Close(dir))
	}
	file, err := unix.Open("file", unix.O_RDONLY, 0)
	r.check(err)
	for _, dir := range []int{file, -1, -7, 9999, 1 << 30} {
		fd, err := unix.Openat(dir, "x", unix.O_CREAT|unix.O_WRONLY, 0o666)
		r.fd("openat", fd, err)
		fd, err = unix.Openat(dir, r.dir+"/abs", unix.O_CREAT|unix.O_WRONLY, 0o666)
		r.fd("openat", fd, err)
		r.err("mkdirat", unix.Mkdirat(dir, "x", 0o777))
		r.err("mkdirat", unix.Mkdirat(dir, "", 0o777))
		r.err("mknodat", unix.Mknodat(dir, "x", 0o777, 0))
		r.err("symlinkat", unix.Symlinkat("y", dir, "x"))
		r.err("renameat", unix.Renameat(dir, "x", unix.AT_FDCWD, "y"))
		r.err("renameat", unix.Renameat(unix.AT_FDCWD, "file", dir, "y"))
		r.err("renameat", unix.Renameat(unix.AT_FDCWD, "nothing/x", dir, "y"))
		r.err("linkat", unix.Linkat(dir, "x", unix.AT_FDCWD, "y", 0))
		r.err("linkat", unix.Linkat(unix.AT_FDCWD, "file", dir, "y", 0))
		r.err("linkat", unix.Linkat(unix.AT_FDCWD, "nothing", dir, "y", 0))
	}
	r.check(unix.Close(file))
}

// raw makes a call with any arguments.
func (r *recorder) raw(what string, trap uintptr, args ...uintptr) {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := syscall.RawSyscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		r.err(what, errno)
		return
	}
	r.err(what, nil)
}

// pointerSituation has paths at the end of what is mapped, and beyond.
func pointerSituation(r *recorder) {
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	r.check(err)
	r.check(unix.Mprotect(mem[2*page:], unix.PROT_NONE))
	at := func(i int) uintptr { return uintptr(unsafe.Pointer(&mem[0])) + uintptr(i) }
	edge := 2 * page
	copy(mem[edge-4:], "new\x00")
	copy(mem[page-3:], "across")
	copy(mem[edge-8:], "abc") // followed by zero
	cwd := uintptr(unix.AT_FDCWD&(1<<32-1)) | 1<<40
	pointers := map[string]uintptr{"edge": at(edge - 4), "across": at(page - 3), "null": 0, "low": 16, "beyond": at(edge), "kernel": 1 << 63, "last": ^uintptr(0)}
	for _, what := range slices.Sorted(maps.Keys(pointers)) {
		p := pointers[what]
		r.lines = append(r.lines, what)
		r.raw("mkdirat", unix.SYS_MKDIRAT, cwd, p, 0o755)
		r.raw("mknodat", unix.SYS_MKNODAT, cwd, p, 0o755, 0)
		r.raw("symlinkat", unix.SYS_SYMLINKAT, p, cwd, p)
		r.raw("renameat2", unix.SYS_RENAMEAT2, cwd, at(edge-8), cwd, p, 0)
		r.raw("renameat2", unix.SYS_RENAMEAT2, cwd, p, cwd, at(edge-8), 0)
		r.raw("linkat", unix.SYS_LINKAT, cwd, p, cwd, p, 1<<20)
		r.raw("linkat", unix.SYS_LINKAT, cwd, p, cwd, at(edge-8), 0)
		r.raw("openat", unix.SYS_OPENAT, cwd, p, unix.O_CREAT|unix.O_EXCL|unix.O_PATH)
		r.raw("openat2", unix.SYS_OPENAT2, cwd, p, at(0), 24)
		r.raw("openat2", unix.SYS_OPENAT2, cwd, at(edge-8), p, 24)
		r.raw("openat2", unix.SYS_OPENAT2, cwd, at(edge-8), p, 8)
		r.raw("openat2", unix.SYS_OPENAT2, cwd, at(edge-8), p, 1<<40)
		r.raw("bind", unix.SYS_BIND, ^uintptr(0), p, 110)
	}
	for i := range mem[:page+16] {
		mem[i] = 'x' // no end within PATH_MAX
	}
	r.raw("long", unix.SYS_MKDIRAT, cwd, at(8), 0o755)
	for i := range mem[:edge] {
		mem[i] = 'y'
	}
	r.raw("unended", unix.SYS_MKDIRAT, cwd, at(edge-10), 0o755)
	r.check(unix.Munmap(mem))
}

func temporarySituation(r *recorder) {
	fd, err := unix.Open("dir", unix.O_TMPFILE|unix.O_RDWR, 0o644)
	r.check(err)
	_, err = unix.Write(fd, []byte("temporary"))
	r.check(err)
	self := fmt.Sprintf("/proc/self/fd/%d", fd)
	r.err("link", unix.Linkat(unix.AT_FDCWD, self, unix.AT_FDCWD, "linked", unix.AT_SYMLINK_FOLLOW))
	r.err("by thread", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/thread-self/fd/%d", fd), unix.AT_FDCWD, "linked2", unix.AT_SYMLINK_FOLLOW))
	r.err("again", unix.Linkat(unix.AT_FDCWD, self, unix.AT_FDCWD, "linked", unix.AT_SYMLINK_FOLLOW))
	r.err("empty", unix.Linkat(fd, "", unix.AT_FDCWD, "linked3", unix.AT_EMPTY_PATH))
	r.err("not empty", unix.Linkat(fd, "", unix.AT_FDCWD, "linked4", 0))
	r.err("nothing", unix.Linkat(9999, "", unix.AT_FDCWD, "linked5", unix.AT_EMPTY_PATH))
	r.err("directory", unix.Linkat(unix.AT_FDCWD, "", unix.AT_FDCWD, "linked6", unix.AT_EMPTY_PATH))
	r.check(unix.Close(fd))
	fd, err = unix.Open("dir", unix.O_TMPFILE|unix.O_RDWR|unix.O_EXCL, 0o644)
	r.check(err)
	r.err("exclusive", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, "linked7", unix.AT_SYMLINK_FOLLOW))
	r.check(unix.Close(fd))
}

// ownDescriptors opens what the caller has open, by its names in /proc and /dev.
func ownDescriptors(r *recorder) {
	file, err := unix.Open("file", unix.O_RDONLY, 0)
	r.check(err)
	var pipe [2]int
	r.check(unix.Pipe(pipe[:]))
	r.check(os.WriteFile("deleted", []byte("still"), 0o600))
	deleted, err := unix.Open("deleted", unix.O_RDONLY, 0)
	r.check(err)
	r.check(os.Remove("deleted"))
	mem, err := unix.MemfdCreate("memory", 0)
	r.check(err)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	r.check(err)
	dir, err := unix.Open("dir", unix.O_RDONLY, 0)
	r.check(err)
	open := map[string]int{"file": file, "read end": pipe[0], "write end": pipe[1], "deleted": deleted, "memory": mem, "socket": pair[0], "directory": dir}
	for _, what := range slices.Sorted(maps.Keys(open)) {
		n := open[what]
		for _, folder := range []string{"/proc/self/fd", "/proc/thread-self/fd", "/dev/fd", "fds", fmt.Sprintf("/proc/%d/fd", os.Getpid()),
			fmt.Sprintf("/proc/self/task/%d/fd", unix.Gettid()), fmt.Sprintf("/proc/self/../%d/fd", os.Getpid())} {
			path := fmt.Sprintf("%s/%d", folder, n)
			label := fmt.Sprintf("%s by %s", what, strings.SplitN(folder, "/", 4)[max(0, min(2, strings.Count(folder, "/")))])
			label = strings.Map(func(c rune) rune {
				if c >= '0' && c <= '9' {
					return -1
				}
				return c
			}, label)
			for _, flags := range []int{unix.O_CREAT | unix.O_WRONLY | unix.O_APPEND, unix.O_CREAT, unix.O_CREAT | unix.O_RDWR | unix.O_NONBLOCK | unix.O_TRUNC,
				unix.O_CREAT | unix.O_NOFOLLOW, unix.O_CREAT | unix.O_EXCL} {
				fd, err := unix.Open(path, flags, 0o644)
				r.fd(label, fd, err)
			}
			if what == "directory" {
				r.err("mkdir in "+label, unix.Mkdir(path+"/made"+strings.ReplaceAll(label, "/", ""), 0o755))
			}
		}
	}
	for _, path := range []string{"/dev/stdout", "/dev/stdin", "/dev/fd/0", "/dev/fd/77", "/dev/null", "/dev/zero", "/dev/tty"} {
		fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY, 0o644)
		r.fd(path, fd, err)
	}
	for _, fd := range []int{file, pipe[0], pipe[1], deleted, mem, pair[0], pair[1], dir} {
		r.check(unix.Close(fd))
	}
}

func howSituation(r *recorder) {
	how := make([]uint64, 600)
	how[0], how[1] = unix.O_CREAT|unix.O_RDWR, 0o600
	name := append([]byte("sized"), 0)
	call := func(what string, size uintptr) {
		fd, _, errno := syscall.RawSyscall6(unix.SYS_OPENAT2, uintptr(unix.AT_FDCWD&(1<<64-1)), uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&how[0])), size, 0, 0)
		if errno != 0 {
			r.err(what, errno)
			return
		}
		r.fd(what, int(fd), nil)
	}
	for _, size := range []uintptr{0, 23, 24, 25, 32, 4096, 4097, ^uintptr(0)} {
		call("zero", size)
	}
	how[20] = 1
	for _, size := range []uintptr{24, 160, 161, 168, 4096} {
		call("not zero", size)
	}
	how[20] = 0
	for _, h := range []unix.OpenHow{{Flags: 1 << 40}, {Flags: unix.O_CREAT, Mode: 1 << 20}, {Mode: 0o600}, {Resolve: 1 << 30},
		{Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_IN_ROOT}, {Flags: unix.O_TMPFILE | unix.O_CREAT | unix.O_RDWR}, {Flags: unix.O_TMPFILE},
		{Flags: unix.O_CREAT | unix.O_DIRECTORY}, {Flags: unix.O_ACCMODE | unix.O_CREAT, Mode: 0o600}} {
		how[0], how[1], how[2] = h.Flags, h.Mode, h.Resolve
		call(fmt.Sprintf("%#x", h), 24)
	}
	runtime.KeepAlive(name)
}

func resolveSituation(r *recorder) {
	r.check(os.Symlink("../file", "dir/out"))
	r.check(os.Symlink("inner", "dir/in"))
	r.check(os.Symlink("fresh", "dir/tofresh"))
	r.check(os.Symlink("/inner", "dir/abs"))
	r.check(os.Symlink("/fresh2", "dir/absfresh"))
	dir, err := unix.Open("dir", unix.O_PATH|unix.O_DIRECTORY, 0)
	r.check(err)
	for _, resolve := range []uint64{unix.RESOLVE_BENEATH, unix.RESOLVE_IN_ROOT, unix.RESOLVE_NO_SYMLINKS, unix.RESOLVE_NO_MAGICLINKS, unix.RESOLVE_NO_XDEV} {
		for _, path := range []string{"inner", "new", "../up", "/inner", "/new2", "out", "in", "tofresh", "abs", "absfresh", "nothing/x", "..", ".", "/", "/proc/self/fd/0", "/proc/self/status"} {
			for _, flags := range []uint64{unix.O_CREAT | unix.O_RDWR, unix.O_RDONLY, unix.O_CREAT | unix.O_EXCL} {
				bounded := resolve == unix.RESOLVE_BENEATH || resolve == unix.RESOLVE_IN_ROOT
				if strings.HasPrefix(path, "/proc") && resolve != unix.RESOLVE_NO_MAGICLINKS || !bounded && (strings.Contains(path, "abs") || strings.HasPrefix(path, "/")) && !strings.HasPrefix(path, "/proc") {
					continue // not where the test may make nothing
				}
				mode := uint64(0)
				if flags&unix.O_CREAT != 0 {
					mode = 0o640
				}
				fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: flags, Mode: mode, Resolve: resolve})
				r.fd(fmt.Sprintf("%s %#x %#x", path, resolve, flags), fd, err)
			}
		}
	}
	r.check(unix.Close(dir))
}

// threadSituation makes names from a thread whose working directory, umask and descriptors are its own.
func threadSituation(r *recorder) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		r.check(unix.Unshare(unix.CLONE_FS | unix.CLONE_FILES))
		r.check(unix.Chdir("dir"))
		unix.Umask(0o007)
		fd, err := unix.Open("bythread", unix.O_CREAT|unix.O_RDWR, 0o777)
		r.fd("open", fd, err)
		dir, err := unix.Open("../full", unix.O_RDONLY, 0)
		r.check(err)
		high, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD, 600)
		r.check(err)
		fd, err = unix.Openat(high, "bydescriptor", unix.O_CREAT|unix.O_RDWR, 0o777)
		r.fd("openat", fd, err)
		fd, err = unix.Open(fmt.Sprintf("/proc/thread-self/fd/%d/byself", high), unix.O_CREAT|unix.O_RDWR, 0o777)
		r.fd("by self", fd, err)
		r.bind("socket")
	}()
	<-done
}

func deepSituation(r *recorder) {
	name := strings.Repeat("d", 200)
	for range 30 {
		r.check(unix.Mkdir(name, 0o755))
		r.check(unix.Chdir(name))
	}
	fd, err := unix.Open("deep", unix.O_CREAT|unix.O_RDWR, 0o644)
	r.err("open", err)
	r.check(unix.Close(fd))
	r.err("rename", unix.Rename("deep", "deeper"))
	r.err("link", unix.Link("deeper", "deepest"))
	for range 30 {
		r.check(unix.Chdir(".."))
	}
}

func socketSituation(r *recorder) {
	udp, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	r.check(err)
	r.err("inet", unix.Bind(udp, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	r.err("inet twice", unix.Bind(udp, &unix.SockaddrInet4{}))
	r.check(unix.Close(udp))
	udp, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	r.check(err)
	r.err("wrong family", unix.Bind(udp, &unix.SockaddrUnix{Name: "x"}))
	r.err("not here", unix.Bind(udp, &unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}}))
	r.err("low port", unix.Bind(udp, &unix.SockaddrInet4{Port: 80}))
	r.check(unix.Close(udp))
	for _, name := range []string{"@abstract", "@", "", strings.Repeat("p", 107), strings.Repeat("p", 108), "dir/" + strings.Repeat("q", 104)} {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		r.check(err)
		raw := append([]byte{unix.AF_UNIX, 0}, name...)
		if strings.HasPrefix(name, "@") {
			raw[2] = 0
		}
		r.raw(fmt.Sprintf("bind %.20s", name), unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw)))
		r.raw("too short", unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])), 1)
		r.raw("negative", unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])), ^uintptr(0))
		r.raw("too long", unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])), 129)
		r.raw("bad pointer", unix.SYS_BIND, uintptr(fd), 8, 16)
		r.check(unix.Close(fd))
	}
	var raw [16]byte
	r.raw("no socket", unix.SYS_BIND, 0, uintptr(unsafe.Pointer(&raw[0])), 16)
	r.raw("no descriptor", unix.SYS_BIND, 9999, uintptr(unsafe.Pointer(&raw[0])), 16)
}

func stickySituation(r *recorder) {
	r.check(os.Mkdir("sticky", 0o777))
	r.check(os.Chmod("sticky", 0o1777))
	r.check(os.WriteFile("sticky/own", nil, 0o666))
	r.check(os.Symlink("../made", "sticky/link"))
	if os.Geteuid() == 0 {
		r.check(os.WriteFile("sticky/others", nil, 0o666))
		r.check(os.Chown("sticky/others", 1000, 1000))
		r.check(unix.Mkfifo("sticky/fifo", 0o666))
		r.check(os.Chown("sticky/fifo", 1000, 1000))
		r.check(os.Symlink("../made2", "sticky/otherslink"))
		r.check(os.Lchown("sticky/otherslink", 1000, 1000))
	}
	for _, name := range []string{"own", "link", "others", "fifo", "otherslink"} {
		fd, err := unix.Open("sticky/"+name, unix.O_CREAT|unix.O_RDWR|unix.O_NONBLOCK, 0o600)
		r.fd(name, fd, err)
	}
}

// oldCalls are those of amd64 alone; elsewhere the standard library has none of them.
func oldCalls(r *recorder) {
	fd, err := unix.Creat("created", 0o640)
	r.fd("creat", fd, err)
	r.err("mkdir", unix.Mkdir("made", 0o750))
	r.err("mknod", unix.Mknod("node", unix.S_IFIFO|0o640, 0))
	r.err("symlink", unix.Symlink("to", "linked"))
	r.err("link", unix.Link("file", "hard"))
	r.err("rename", unix.Rename("hard", "harder"))
}
