package broker

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	probes["unix-peer"] = func(string) any { return peerProbe() }
	probes["unix-grasp"] = func(string) any { return graspProbe() }
}

// someIDs are ids to connect under, effective and of file access. Only root has more than one.
func someIDs() (list []struct{ euid, egid, fsuid int }) {
	add := func(euid, egid, fsuid int) { list = append(list, struct{ euid, egid, fsuid int }{euid, egid, fsuid}) }
	if os.Geteuid() != 0 {
		add(os.Geteuid(), os.Getegid(), os.Geteuid())
		return list
	}
	add(0, 0, 0)
	add(1000, 1001, 1000)
	add(0, 1001, 0)
	add(1002, 0, 1002)
	add(0, 0, 1000)
	add(1000, 1000, 1003)
	return list
}

// under runs f on a thread with other ids and a group list, where that is possible. The thread ends with it.
func (r *recorder) under(euid, egid, fsuid int, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			groups := []uint32{7, 8}
			keep := ^uintptr(0)
			call := func(trap uintptr, a, b, c uintptr) {
				if _, _, errno := syscall.RawSyscall(trap, a, b, c); errno != 0 {
					r.check(errno)
				}
			}
			call(unix.SYS_SETGROUPS, 2, uintptr(unsafe.Pointer(&groups[0])), 0)
			call(unix.SYS_SETRESGID, keep, uintptr(egid), keep)
			if fsuid != euid {
				call(unix.SYS_SETRESUID, keep, uintptr(euid), uintptr(fsuid)) // so that it may
			} else {
				call(unix.SYS_SETRESUID, keep, uintptr(euid), keep)
			}
			syscall.RawSyscall(unix.SYS_SETFSUID, uintptr(fsuid), 0, 0) // which gives the last one
		}
		f()
	}()
	<-done
}

// peerProbe connects under several ids, and writes down who the peer is told to have come, and what else may happen.
func peerProbe() []string {
	r := &recorder{}
	runtime.LockOSThread()
	unix.Umask(0)
	cwd, err := os.Getwd()
	r.check(err)
	r.dir = cwd
	server := r.serve("server", unix.SOCK_STREAM, 8)
	packets := r.serve("packets", unix.SOCK_SEQPACKET, 8)
	closed := r.serve("closed", unix.SOCK_STREAM, 8)
	r.check(unix.Close(closed))
	full := r.fill()
	private := r.serve("private", unix.SOCK_STREAM, 8)
	r.check(os.Chmod("private", 0o700))
	abstract := r.serve("@srt peer", unix.SOCK_STREAM, 8)
	for _, name := range []string{"free", "taken"} {
		fd := r.unixSocket(unix.SOCK_DGRAM)
		r.check(unix.Bind(fd, &unix.SockaddrUnix{Name: name}))
		if name == "taken" {
			r.check(unix.Connect(fd, &unix.SockaddrUnix{Name: "free"}))
		}
	}
	for _, id := range someIDs() {
		r.under(id.euid, id.egid, id.fsuid, func() {
			r.lines = append(r.lines, fmt.Sprint("under ", id))
			r.peer("server", unix.SOCK_STREAM, server)
			r.peer("packets", unix.SOCK_SEQPACKET, packets)
			r.peer("@srt peer", unix.SOCK_STREAM, abstract)
			r.connect("private", "private", unix.SOCK_STREAM, private)
			r.connect("closed", "closed", unix.SOCK_STREAM, -1)
			r.connect("nothing", "nothing", unix.SOCK_STREAM, -1)
			r.connect("other type", "server", unix.SOCK_SEQPACKET, -1)
			r.connect("other type", "server", unix.SOCK_DGRAM, -1)
			r.connect("taken", "taken", unix.SOCK_DGRAM, -1)
			r.connect("free", "free", unix.SOCK_DGRAM, -1)
			fd := r.unixSocket(unix.SOCK_STREAM | unix.SOCK_NONBLOCK)
			r.err("full", unix.Connect(fd, &unix.SockaddrUnix{Name: "full"}))
			r.check(unix.Close(fd))
			r.err("a server", unix.Connect(server, &unix.SockaddrUnix{Name: "server"}))
			made, err := unix.Open(fmt.Sprint("made", id), unix.O_CREAT|unix.O_RDWR, 0o600) // the hand is itself again
			r.fd("made", made, err)
		})
	}
	for range someIDs() {
		r.under(someIDs()[0].euid, someIDs()[0].egid, someIDs()[0].fsuid, func() { r.connect("still", "server", unix.SOCK_STREAM, server) })
	}
	last := someIDs()[len(someIDs())/2]
	waiting := r.unixSocket(unix.SOCK_STREAM)
	done := make(chan error, 1)
	number := make(chan int)
	go r.under(last.euid, last.egid, last.fsuid, func() {
		number <- unix.Gettid()
		done <- unix.Connect(waiting, &unix.SockaddrUnix{Name: "full"})
	})
	waitForConnect(os.Getpid(), <-number)
	r.check(os.Mkdir("meanwhile", 0o700))
	r.accept(full)
	r.err("waited", <-done)
	r.told(full)
	return r.lines
}

// peer connects, and writes down whom the server is told to have accepted.
func (r *recorder) peer(name string, kind, server int) {
	fd := r.unixSocket(kind)
	defer unix.Close(fd)
	err := unix.Connect(fd, &unix.SockaddrUnix{Name: name})
	r.err(name, err)
	if err != nil {
		return
	}
	r.told(server)
	r.err("again", unix.Connect(fd, &unix.SockaddrUnix{Name: name}))
}

// told accepts a connection and writes down whose it is said to be.
func (r *recorder) told(server int) {
	fd, _, err := unix.Accept(server)
	r.check(err)
	defer unix.Close(fd)
	who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	r.check(err)
	r.lines = append(r.lines, fmt.Sprintf("user %d group %d", who.Uid, who.Gid))
	r.lines = append(r.lines, fmt.Sprint("process ", who.Pid))
	var groups [64]uint32
	size := uint32(len(groups) * 4)
	_, _, errno := syscall.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS, uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		r.check(errno)
	}
	r.lines = append(r.lines, fmt.Sprint("groups ", groups[:size/4]))
}

// TestUnix_PeersAreToldTheCaller has servers in the sandbox ask who came: it is the caller's effective user, group and
// groups, and no process.
func TestUnix_PeersAreToldTheCaller_NET81(t *testing.T) {
	// The process that a peer is told is the hand's, which is in no namespace of the sandbox.
	parted := func(lines []string) (rest []string, processes map[string]bool) {
		processes = map[string]bool{}
		for _, l := range lines {
			if strings.HasPrefix(l, "process ") {
				processes[l] = true
			} else {
				rest = append(rest, l)
			}
		}
		return rest, processes
	}
	var native []string
	runSandbox(t, setup{probe: "unix-peer", folder: tempFolder(t)}, &native)
	want, _ := parted(native)
	for _, line := range want {
		if strings.HasPrefix(line, "setup: ") {
			t.Fatalf("the probe could not do its work: %q", want)
		}
	}
	for name, s := range map[string]setup{"asked each time": {judge: &testJudge{}}, "kept": {judge: &testJudge{}, watched: true},
		"all": {judge: &testJudge{}, mutate: func(c *Config) { c.Unix.All = true }}} {
		t.Run(name, func(t *testing.T) {
			s.probe, s.folder, s.filter = "unix-peer", tempFolder(t), connects
			var lines []string
			for _, d := range runSandbox(t, s, &lines) {
				t.Errorf("reported: %+v", d)
			}
			got, processes := parted(lines)
			if d := diffLines(want, got); d != "" {
				t.Errorf("(-without, +with):\n%s", d)
			}
			if len(processes) != 1 || !processes["process 0"] {
				t.Errorf("%v", processes)
			}
		})
	}
}

// soPeerPidfd is SO_PEERPIDFD of Linux 6.5 (unix(7)): a descriptor of the process that connected.
const soPeerPidfd = 77

// graspProbe takes a descriptor of who connected, if the kernel gives one, and tries what can be done with it.
func graspProbe() map[string]string {
	r := &recorder{}
	server := r.serve("server", unix.SOCK_STREAM, 8)
	client := r.unixSocket(unix.SOCK_STREAM)
	r.check(unix.Connect(client, &unix.SockaddrUnix{Name: "server"}))
	fd, _, err := unix.Accept(server)
	r.check(err)
	result := map[string]string{}
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soPeerPidfd)
	result["pidfd"] = fmt.Sprint(err)
	if err == nil {
		result["kill"] = fmt.Sprint(unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0))
		for n := range 3 {
			_, err := unix.PidfdGetfd(pidfd, n, 0)
			result[fmt.Sprint("descriptor ", n)] = fmt.Sprint(err)
		}
		result["enter"] = fmt.Sprint(unix.Setns(pidfd, unix.CLONE_NEWNET))
		for _, request := range []uint{0xff01, 0xff03, 0xff04, 0xff09} { // PIDFD_GET_*_NAMESPACE of linux/pidfd.h
			_, err := unix.IoctlRetInt(pidfd, request)
			result[fmt.Sprintf("request %#x", request)] = fmt.Sprint(err)
		}
	}
	r.connect("afterwards", "server", unix.SOCK_STREAM, server)
	result["afterwards"] = strings.Join(r.lines, ", ")
	return result
}

// TestUnix_PeersCannotGraspTheHand has a server in the sandbox ask for the process that connected, which is a hand.
func TestUnix_PeersCannotGraspTheHand_NET84(t *testing.T) {
	var hands atomic.Int64
	var got map[string]string
	runSandbox(t, setup{judge: &testJudge{}, filter: connects, probe: "unix-grasp", folder: tempFolder(t), workers: 1, mutate: func(c *Config) {
		start := c.NewHand
		c.NewHand = func() (Hand, error) {
			hands.Add(1)
			return start()
		}
	}}, &got)
	if got["afterwards"] != "afterwards: ok, peer server" || hands.Load() != 1 {
		t.Errorf("%q, with %d hands", got["afterwards"], hands.Load())
	}
	for what, outcome := range got {
		if outcome == "<nil>" && what != "pidfd" {
			t.Errorf("%s succeeded", what)
		}
	}
}
