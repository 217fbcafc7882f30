package broker

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp"
)

func init() { probes["unix-own"] = func(string) any { return ownSocketsProbe() } }

// connects is the filter of the tests that connect.
func connects() seccomp.Filter { return seccomp.Stack(seccomp.Network(), seccomp.Names())[0] }

// unixSocket makes a socket of a type.
func (r *recorder) unixSocket(kind int) int {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	r.check(err)
	return fd
}

// serve makes a socket that listens at a path or, with a name that begins with "@", in its network namespace.
func (r *recorder) serve(name string, kind, backlog int) int {
	fd := r.unixSocket(kind)
	r.check(unix.Bind(fd, &unix.SockaddrUnix{Name: name}))
	r.check(unix.Listen(fd, backlog))
	return fd
}

// connect writes down what a connect of a fresh socket gives, and whom it reached: the peer's name, and that a byte comes
// through.
func (r *recorder) connect(what, name string, kind, server int) {
	fd := r.unixSocket(kind)
	defer unix.Close(fd)
	err := unix.Connect(fd, &unix.SockaddrUnix{Name: name})
	r.err(what, err)
	if err != nil || server < 0 {
		return
	}
	peer, _, err := unix.Accept(server)
	r.check(err)
	defer unix.Close(peer)
	_, err = unix.Write(fd, []byte(what))
	r.check(err)
	buf := make([]byte, 100)
	n, err := unix.Read(peer, buf)
	r.check(err)
	if string(buf[:n]) != what {
		r.lines = append(r.lines, fmt.Sprintf("%q came through", buf[:n]))
	}
	if at, err := unix.Getpeername(fd); err == nil {
		sa, _ := at.(*unix.SockaddrUnix)
		r.lines = append(r.lines, fmt.Sprintf("peer %+v", sa.Name))
	}
}

// ownSocketsProbe connects to sockets of its own, and to what is none, in every way.
func ownSocketsProbe() []string {
	runtime.LockOSThread()
	r := &recorder{}
	stream := r.serve("stream", unix.SOCK_STREAM, 8)
	packets := r.serve("packets", unix.SOCK_SEQPACKET, 8)
	abstract := r.serve("@srt test", unix.SOCK_STREAM, 8)
	r.check(os.Mkdir("dir", 0o755))
	r.check(os.Symlink("stream", "link"))
	r.check(os.Symlink("../stream", "dir/up"))
	r.check(os.Symlink("loop", "loop"))
	r.check(os.Symlink("/proc/self/cwd/stream", "self"))
	r.check(os.WriteFile("file", nil, 0o600))
	cwd, err := os.Getwd()
	r.check(err)
	r.connect("relative", "stream", unix.SOCK_STREAM, stream)
	r.connect("absolute", cwd+"/stream", unix.SOCK_STREAM, stream)
	r.connect("packets", "./packets", unix.SOCK_SEQPACKET, packets)
	r.connect("abstract", "@srt test", unix.SOCK_STREAM, abstract)
	r.connect("no such abstract", "@srt other", unix.SOCK_STREAM, -1)
	r.connect("other type", "packets", unix.SOCK_STREAM, -1)
	r.connect("other type", "stream", unix.SOCK_SEQPACKET, -1)
	for _, path := range []string{"link", "dir/up", "dir/../stream", "//proc/self/cwd/stream", "self", "/proc/thread-self/cwd/dir/up",
		fmt.Sprintf("/proc/%d/cwd/stream", os.Getpid())} {
		r.connect("by another path", path, unix.SOCK_STREAM, stream)
	}
	for _, path := range []string{"nothing", "dir/nothing", "file/x", "loop", "dir", ".", "..", "/", "file", "stream/", "link/", "stream/.", "nothing/x", "/proc/self",
		"/proc/self/nothing", "/dev/null", strings.Repeat("x", 107), strings.Repeat("x/", 53)} {
		r.connect("no socket", path, unix.SOCK_STREAM, -1)
	}
	for name, fd := range map[string]int{"itself": stream} {
		r.connect("socket "+name+" by a descriptor", fmt.Sprintf("/proc/self/fd/%d", fd), unix.SOCK_STREAM, -1)
	}
	r.movedSockets(stream)
	r.oddConnects(stream)
	r.fullBacklog()
	r.check(unix.Close(stream))
	r.connect("closed", "stream", unix.SOCK_STREAM, -1)
	r.datagrams()
	return r.lines
}

// movedSockets connects to a socket whose file has been moved, has two names, and has none.
func (r *recorder) movedSockets(stream int) {
	r.check(os.Rename("stream", "dir/moved"))
	r.connect("old name", "stream", unix.SOCK_STREAM, -1)
	r.connect("moved", "dir/moved", unix.SOCK_STREAM, stream)
	r.check(os.Link("dir/moved", "stream"))
	r.connect("second name", "stream", unix.SOCK_STREAM, stream)
	r.check(os.Remove("dir/moved"))
	at, err := unix.Open("stream", unix.O_PATH|unix.O_CLOEXEC, 0)
	r.check(err)
	r.connect("by a descriptor of the file", fmt.Sprintf("/proc/self/fd/%d", at), unix.SOCK_STREAM, stream)
	r.check(os.Rename("stream", "kept"))
	r.check(os.Link("kept", "stream"))
	r.check(os.Remove("kept"))
	gone := r.serve("gone", unix.SOCK_STREAM, 4)
	nameless, err := unix.Open("gone", unix.O_PATH|unix.O_CLOEXEC, 0)
	r.check(err)
	r.check(os.Remove("gone"))
	r.connect("without a name", fmt.Sprintf("/proc/self/fd/%d", nameless), unix.SOCK_STREAM, gone)
	r.connect("removed", "gone", unix.SOCK_STREAM, -1)
	for _, fd := range []int{at, gone, nameless} {
		r.check(unix.Close(fd))
	}
	if os.Geteuid() != 0 {
		r.check(os.Chmod("stream", 0o500))
		r.connect("not to be written", "stream", unix.SOCK_STREAM, -1)
		r.check(os.Chmod("stream", 0o755))
		r.check(os.Chmod("dir", 0o600))
		r.connect("not to be searched", "dir/up", unix.SOCK_STREAM, -1)
		r.check(os.Chmod("dir", 0o755))
	}
}

// oddConnects has addresses and sockets that are no good.
func (r *recorder) oddConnects(stream int) {
	address := make([]byte, 256)
	address[0] = unix.AF_UNIX
	copy(address[2:], "stream")
	at := uintptr(unsafe.Pointer(&address[0]))
	for _, size := range []uintptr{0, 1, 2, 3, 5, 8, 9, 110, 111, 128, 129, ^uintptr(0)} {
		fd := r.unixSocket(unix.SOCK_STREAM)
		r.raw(fmt.Sprintf("size %d", int(size)), unix.SYS_CONNECT, uintptr(fd), at, size)
		r.check(unix.Close(fd))
	}
	for _, family := range []byte{0, 2, 10, 16, 40, 255} {
		address[0] = family
		fd := r.unixSocket(unix.SOCK_STREAM)
		r.raw(fmt.Sprintf("family %d", family), unix.SYS_CONNECT, uintptr(fd), at, 20)
		r.check(unix.Close(fd))
	}
	address[0] = unix.AF_UNIX
	fd := r.unixSocket(unix.SOCK_STREAM)
	for _, pointer := range []uintptr{0, 16, 1 << 63} {
		r.raw("bad pointer", unix.SYS_CONNECT, uintptr(fd), pointer, 20)
	}
	r.raw("abstract of no length", unix.SYS_CONNECT, uintptr(fd), at+100, 3)
	r.err("connect", unix.Connect(fd, &unix.SockaddrUnix{Name: "stream"}))
	r.err("again", unix.Connect(fd, &unix.SockaddrUnix{Name: "stream"}))
	r.err("again by an abstract name", unix.Connect(fd, &unix.SockaddrUnix{Name: "@srt test"}))
	r.raw("dissolve", unix.SYS_CONNECT, uintptr(fd), at+100, 16)
	r.check(unix.Close(fd))
	r.err("a server", unix.Connect(stream, &unix.SockaddrUnix{Name: "packets"}))
	r.raw("no descriptor", unix.SYS_CONNECT, 9999, at, 20)
	r.raw("no descriptor", unix.SYS_CONNECT, ^uintptr(0), at, 20)
	file, err := unix.Open("file", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	r.check(err)
	r.raw("no socket", unix.SYS_CONNECT, uintptr(file), at, 20)
	r.check(unix.Close(file))
	peer, _, err := unix.Accept(stream) // of those before; the backlog has room for the others
	r.check(err)
	r.check(unix.Close(peer))
}

// fullBacklog connects where there is no room.
func (r *recorder) fullBacklog() {
	server := r.serve("full", unix.SOCK_STREAM, 0)
	defer unix.Close(server)
	first := r.unixSocket(unix.SOCK_STREAM)
	r.err("first", unix.Connect(first, &unix.SockaddrUnix{Name: "full"}))
	fd := r.unixSocket(unix.SOCK_STREAM | unix.SOCK_NONBLOCK)
	r.err("without waiting", unix.Connect(fd, &unix.SockaddrUnix{Name: "full"}))
	r.err("abstract", unix.Connect(fd, &unix.SockaddrUnix{Name: "@srt nobody"}))
	r.check(unix.Close(fd))
	fd = r.unixSocket(unix.SOCK_STREAM)
	limit := unix.Timeval{Usec: 30_000}
	r.check(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit))
	r.err("within a time", unix.Connect(fd, &unix.SockaddrUnix{Name: "full"}))
	after, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	r.check(err)
	r.lines = append(r.lines, fmt.Sprintf("time limit %d.%06d", after.Sec, after.Usec-after.Usec%10_000)) // in ticks
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	r.check(err)
	r.lines = append(r.lines, fmt.Sprintf("flags %#x", flags))
	r.check(unix.Close(fd))
	r.check(unix.Close(first))
}

// datagrams connects and dissolves a datagram socket, which sandboxes without allowAllUnixSockets do not have.
func (r *recorder) datagrams() {
	server := r.unixSocket(unix.SOCK_DGRAM)
	r.check(unix.Bind(server, &unix.SockaddrUnix{Name: "datagrams"}))
	fd := r.unixSocket(unix.SOCK_DGRAM)
	r.err("datagram", unix.Connect(fd, &unix.SockaddrUnix{Name: "datagrams"}))
	_, err := unix.Write(fd, []byte("x"))
	r.err("write", err)
	r.err("again", unix.Connect(fd, &unix.SockaddrUnix{Name: "datagrams"}))
	none := [16]byte{}
	r.raw("dissolve", unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none[0])), 16)
	_, err = unix.Write(fd, []byte("x"))
	r.err("write", err)
	r.err("other type", unix.Connect(fd, &unix.SockaddrUnix{Name: "packets"}))
	r.check(unix.Close(fd))
	r.check(unix.Close(server))
}

// TestUnix_OwnSocketsLikeWithoutABroker has the sandbox connect to what is its own: all is as without a broker, and nothing
// is asked of the rules or reported.
func TestUnix_OwnSocketsLikeWithoutABroker_NET80_NET81(t *testing.T) {
	var want []string
	runSandbox(t, setup{probe: "unix-own", folder: tempFolder(t)}, &want)
	for _, line := range want {
		if strings.HasPrefix(line, "setup: ") {
			t.Fatalf("the probe could not do its work: %q", want)
		}
	}
	for name, s := range map[string]setup{
		"fast":      {judge: &testJudge{}},
		"slow bind": {judge: &testJudge{suspect: anything}},
		"kept":      {judge: &testJudge{}, watched: true},
		"roots":     {judge: &testJudge{}, mutate: func(c *Config) { c.Roots = true }},
		"all":       {judge: &testJudge{}, mutate: func(c *Config) { c.Unix.All = true }},
	} {
		t.Run(name, func(t *testing.T) {
			s.probe, s.folder, s.filter = "unix-own", tempFolder(t), connects
			var got []string
			for _, d := range runSandbox(t, s, &got) {
				t.Errorf("reported: %+v", d)
			}
			folderless := func(lines []string) []string {
				for i := range lines {
					lines[i] = strings.ReplaceAll(lines[i], s.folder, "FOLDER")
				}
				return lines
			}
			if d := diffLines(want, folderless(got)); d != "" {
				t.Errorf("(-without, +with):\n%s", d)
			}
		})
	}
}
