package broker

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	probes["unix-many"] = func(string) any { return manyProbe(false) }
	probes["unix-many-used"] = func(string) any { return manyProbe(true) }
	probes["unix-many-child"] = func(string) any { return manyChild() }
	probes["unix-handed"] = func(string) any { return handedSocketProbe() }
	probes["unix-nested"] = func(string) any { return nestedSocketsProbe() }
	probes["unix-nested-child"] = func(string) any { return nestedSocketsChild() }
}

// manyProbe binds thousands of sockets, most of which lose their names, and then a child binds as many. It tells who can be
// reached: what the child has bound makes no other process's be forgotten. used says that the first one is used meanwhile.
func manyProbe(used bool) map[string]int {
	result := map[string]int{}
	check := func(err error) {
		if err != nil {
			result["setup: "+err.Error()]++
		}
	}
	bind := func(name string) int {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		check(err)
		check(unix.Bind(fd, &unix.SockaddrUnix{Name: name}))
		return fd
	}
	kept := bind("kept")
	check(unix.Listen(kept, 4096))
	for range 3 * manyLimit {
		fd := bind("gone")
		check(unix.Close(fd))
		check(os.Remove("gone"))
		if used {
			reachOnce("kept")
		}
	}
	result["first "+reachOnce("kept")]++
	self, err := os.Executable()
	check(err)
	p, err := os.StartProcess(self, []string{self}, &os.ProcAttr{Env: []string{envProbe + "=unix-many-child"}, Files: []*os.File{nil, nil, os.Stderr}})
	check(err)
	_, err = p.Wait()
	check(err)
	result["at last "+reachOnce("kept")]++
	result["the newest "+reachOnce(fmt.Sprint("still", manyLimit+9))]++
	result["the used "+reachOnce("still1")]++
	result["the oldest "+reachOnce("still0")]++
	os.Stdout.WriteString("\n")
	check(json.NewDecoder(os.Stdin).Decode(new(int)))
	return result
}

// manyLimit is how many sockets are remembered in the tests of that.
const manyLimit = 128

// manyChild binds more sockets than are remembered, and uses one of the first.
func manyChild() any {
	for i := range manyLimit + 10 {
		fd := inetSocket(unix.AF_UNIX, unix.SOCK_STREAM)
		fatal(unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprint("still", i)}))
		fatal(unix.Close(fd))
		reachOnce("still1")
	}
	return nil
}

// reachOnce gives how a connect ends.
func reachOnce(path string) string {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	defer unix.Close(fd)
	r := &recorder{}
	r.err("connect", unix.Connect(fd, &unix.SockaddrUnix{Name: path}))
	return r.lines[0]
}

// TestUnix_ManySocketsAreForgotten binds more sockets than a Server remembers: those without a name make room first, then
// those of the process that has bound most, and of these the one that was not used for longest.
func TestUnix_ManySocketsAreForgotten_NET80(t *testing.T) {
	t.Run("by handle", func(t *testing.T) { manySockets(t, true) })
	t.Run("by descriptor", func(t *testing.T) { manySockets(t, false) })
}

func manySockets(t *testing.T, handles bool) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// Whether a file has lost its name only a descriptor tells.
	probe := map[bool]string{false: "unix-many", true: "unix-many-used"}[handles]
	b := startSandbox(t, setup{judge: &testJudge{}, filter: connects, probe: probe, folder: memoryFolder(t), stdin: r, server: func(s *Server) {
		o := &s.unix.own
		o.named.prepare(func() int { return manyLimit })
		o.held.prepare(func() int { return manyLimit })
		o.withoutHandles = !handles
	}})
	if _, err := b.out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	o := &b.server.unix.own
	o.mu.Lock()
	held, named := len(o.held.byID), len(o.named.byID)
	o.mu.Unlock()
	if n := held + named; n != manyLimit || held > 0 && named > 0 {
		t.Errorf("%d are remembered by descriptor and %d by handle, want %d", held, named, manyLimit)
	}
	if n := len(openFiles()); n > held+100 || handles && held > 0 {
		t.Errorf("%d descriptors are open, for %d sockets", n, held)
	}
	if _, err := w.WriteString("1\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var got map[string]int
	b.finish(t, &got)
	for _, want := range []string{"first connect: ok", "at last connect: ok", "the newest connect: ECONNREFUSED", "the used connect: ECONNREFUSED", "the oldest connect: EACCES"} {
		if got[want] != 1 {
			t.Errorf("%v, want %q", got, want)
		}
	}
	if len(got) != 5 {
		t.Error(got)
	}
}

// A part of this process's descriptors is all that a sandbox can take up.
func TestUnix_TheLimitFollowsTheDescriptors_NET80(t *testing.T) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		t.Fatal(err)
	}
	if got := shareOfFiles(maxHeld, heldShare); got < 1 || got > maxHeld || uint64(got) > r.Cur/heldShare {
		t.Errorf("%d of %d", got, r.Cur)
	}
	if got := shareOfFiles(maxHeld, 1<<40); got != 1 {
		t.Errorf("%d of hardly any, want 1", got)
	}
}

// handedSocketProbe binds a socket that the caller made, and connects to it.
func handedSocketProbe() map[string]string {
	result := map[string]string{}
	note := func(what string, err error) { result[what] = fmt.Sprint(err) }
	note("bind", unix.Bind(0, &unix.SockaddrUnix{Name: "handed"}))
	note("listen", unix.Listen(0, 4))
	result["connect"] = reachOnce("handed")
	result["served by the host"] = reachOnce("host")
	return result
}

// TestUnix_SocketsOfTheCaller gives the sandbox a socket that was made outside. What an ordinary user's sandbox binds it to is
// no file that srt can ask for, and counts as the host's; root's is as good as any.
func TestUnix_SocketsOfTheCaller_NET80(t *testing.T) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	folder := tempFolder(t)
	host := listenOutside(t, folder+"/host")
	var got map[string]string
	b := startSandbox(t, setup{judge: &testJudge{}, filter: connects, probe: "unix-handed", folder: folder, stdin: f})
	denials := b.finishWith(t, &got)
	want := map[string]string{"bind": "<nil>", "listen": "<nil>", "connect": "connect: ok", "served by the host": "connect: EACCES"}
	reports := 1
	if os.Geteuid() != 0 {
		want["connect"], reports = "connect: EACCES", 2
	}
	for what, outcome := range want {
		if got[what] != outcome {
			t.Errorf("%s: %s, want %s", what, got[what], outcome)
		}
	}
	if len(denials) != reports || denials[0].Err != nil {
		t.Errorf("%+v", denials)
	}
	if host.reached.Load() != 0 {
		t.Error("the host's socket was reached")
	}
}

// nestedSocketsProbe has a child in namespaces of its own mount what is denied where something is allowed, and uses a
// directory that the child sends.
func nestedSocketsProbe() map[string]string {
	result := map[string]string{}
	self, err := os.Executable()
	if err != nil {
		result["setup"] = err.Error()
		return result
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		result["setup"] = err.Error()
		return result
	}
	r, w, err := os.Pipe()
	if err != nil {
		result["setup"] = err.Error()
		return result
	}
	p, err := os.StartProcess(self, []string{self}, &os.ProcAttr{Env: []string{envProbe + "=unix-nested-child"},
		Files: []*os.File{os.NewFile(uintptr(pair[1]), "pair"), w, os.Stderr}, Sys: ownNamespaces()})
	w.Close()
	if err != nil {
		result["setup"] = err.Error()
		return result
	}
	buf, control := make([]byte, 1), make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(pair[0], buf, control, 0)
	if err != nil {
		result["receive"] = err.Error()
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		result["receive"] = fmt.Sprint(messages, err)
		return result
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || unix.Fchdir(fds[0]) != nil {
		result["receive"] = fmt.Sprint(err)
	}
	runtime.LockOSThread()
	result["in a directory of its"] = reachOnce("allowed")
	if _, err := unix.Write(pair[0], []byte("x")); err != nil {
		result["answer"] = err.Error()
	}
	var inner map[string]string
	if err := json.NewDecoder(r).Decode(&inner); err != nil {
		result["child"] = err.Error()
	}
	for what, outcome := range inner {
		result["child: "+what] = outcome
	}
	if _, err := p.Wait(); err != nil {
		result["child"] = err.Error()
	}
	return result
}

// ownNamespaces are a user, a mount and a network namespace of the child's own.
func ownNamespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}}
}

func nestedSocketsChild() map[string]string {
	result := map[string]string{}
	note := func(what string, err error) { result[what] = fmt.Sprint(err) }
	runtime.LockOSThread()
	result["before"] = reachUnix("allowed")
	note("mount", unix.Mount("denied", "allowed", "", unix.MS_BIND, ""))
	note("chdir", unix.Chdir(".")) // into what it shows now
	result["mounted over"] = reachOnce("allowed")
	own, err := net.Listen("unix", "nested")
	note("listen", err)
	result["of its own"] = reachOnce("nested")
	fd, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY, 0)
	note("open", err)
	note("send", unix.Sendmsg(0, []byte("x"), unix.UnixRights(fd), nil, 0))
	_, err = unix.Read(0, make([]byte, 1)) // until it has been used
	note("wait", err)
	if err == nil {
		own.Close()
	}
	return result
}

// TestUnix_MountsOfACommand has a sandbox in which commands can mount (allowNestedUserNamespaces) show a denied socket at an
// allowed location.
func TestUnix_MountsOfACommandChangeNothing_NET80(t *testing.T) {
	folder := tempFolder(t)
	denied := listenOutside(t, folder+"/denied")
	allowed := listenOutside(t, folder+"/allowed")
	var got map[string]string
	b := startSandbox(t, setup{judge: &testJudge{}, filter: connects, probe: "unix-nested", folder: folder, more: 1 << unix.CAP_SETFCAP,
		mutate: func(c *Config) {
			c.Roots = true
			c.Unix.Allowed = func(at string, _, _ uint64) bool { return at == folder+"/allowed" }
		}})
	denials := b.finishWith(t, &got)
	want := map[string]string{"in a directory of its": "connect: EACCES", "child: before": "reached allowed", "child: mount": "<nil>", "child: chdir": "<nil>",
		"child: mounted over": "connect: EACCES", "child: listen": "<nil>", "child: of its own": "connect: ok", "child: open": "<nil>", "child: send": "<nil>",
		"child: wait": "<nil>"}
	for what, outcome := range want {
		if got[what] != outcome {
			t.Errorf("%s: %s, want %s", what, got[what], outcome)
		}
	}
	if len(got) != len(want) {
		t.Error(got)
	}
	if denied.reached.Load() != 0 || allowed.reached.Load() != 1 {
		t.Errorf("the denied socket was reached %d times, the allowed one %d times", denied.reached.Load(), allowed.reached.Load())
	}
	if len(denials) != 2 || slices.ContainsFunc(denials, func(d Denial) bool { return d.Err != nil || d.Path != folder+"/allowed" }) {
		t.Errorf("%+v", denials)
	}
}
