package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp"
)

func init() {
	probes["observed-threads"] = func(f string) any {
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				runtime.LockOSThread()
				for j := range 20 {
					raw(unix.SYS_MKDIRAT, cwdFD, cstrOf(fmt.Sprintf("%s/ro/t%d-%d", f, i, j)), 0o755)
				}
			})
		}
		wg.Wait()
		return "done"
	}
	probes["observed-dying"] = func(f string) any {
		var wg sync.WaitGroup
		for i := range 200 { // threads that end right after a call, or in the middle of one
			wg.Go(func() {
				runtime.LockOSThread()
				raw(unix.SYS_MKDIRAT, cwdFD, cstrOf(fmt.Sprintf("%s/ro/d%d", f, i)), 0o755)
			})
		}
		wg.Wait()
		for range 20 {
			c := exec.Command("/bin/sh", "-c", "while :; do mkdir ro/x; done")
			must(c.Start())
			time.Sleep(3 * time.Millisecond)
			must(c.Process.Kill())
			_ = c.Wait()
		}
		return "done"
	}
	probes["observed-undumpable"] = func(f string) any {
		must(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
		errno, _ := errors.AsType[syscall.Errno](unix.Mkdir(f+"/ro/x", 0o755))
		return int(errno)
	}
	probes["observed-execs"] = func(string) any {
		for i := range 100 {
			if out, err := exec.Command("/bin/sh", "-c", fmt.Sprintf("exec /bin/echo %d", i)).Output(); err != nil || string(out) != fmt.Sprintf("%d\n", i) {
				return fmt.Sprintf("%q, %v", out, err)
			}
		}
		return "done"
	}
	probes["observed-signals"] = func(f string) any {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGALRM)
		tick := unix.Timeval{Usec: 200}
		_, err := unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{Interval: tick, Value: tick})
		must(err)
		for range 5000 {
			fd, err := unix.Open(f+"/w/file", unix.O_RDWR, 0)
			if err != nil {
				return err.Error()
			}
			unix.Close(fd)
		}
		_, err = unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{})
		must(err)
		return "done"
	}
	probes["observed-stall"] = func(f string) any {
		stalled := make(chan error)
		go func() { stalled <- unix.Mkdir(f+"/w/mnt/x", 0o755) }()
		for i := range 100 {
			raw(unix.SYS_MKDIRAT, cwdFD, cstrOf(fmt.Sprintf("%s/ro/s%d", f, i)), 0o755)
		}
		return (<-stalled).Error()
	}
}

var cstrMu sync.Mutex

// cstrOf is cstr for several goroutines.
func cstrOf(s string) uintptr {
	cstrMu.Lock()
	defer cstrMu.Unlock()
	return cstr(s)
}

// observing is a sandbox under the observer alone.
func observing(f, probe string, reads bool, server **Server) setup {
	s := setup{judge: &testJudge{}, filter: seccomp.ObserveWrites, probe: probe, folder: f, mounts: []string{"ro!"},
		mutate: func(c *Config) { c.Observe = &Observation{Judge: folderJudge{f}, Reads: reads, Only: true} },
		server: func(s *Server) { *server = s }}
	if reads {
		s.filter = seccomp.ObserveAll
	}
	return s
}

// Of what 50 threads do at once each call is one report, or counted.
func TestObserve_ManyThreads(t *testing.T) {
	f := observedFolder(t)
	var server *Server
	var answer string
	denials := runSandbox(t, observing(f, "observed-threads", false, &server), &answer)
	paths := map[string]int{}
	for _, d := range denials {
		paths[d.Path]++
	}
	for p, n := range paths {
		if n != 1 {
			t.Errorf("%s: %d reports", p, n)
		}
	}
	if n := len(denials) + int(server.Dropped()); n != 1000 || server.Unobserved() != 0 {
		t.Errorf("%d reports, %d dropped, %d calls not looked at, of 1000", len(denials), server.Dropped(), server.Unobserved())
	}
}

// Threads that end, and processes that are killed while they wait, leave nothing behind and no report of another's.
func TestObserve_CallersThatEnd(t *testing.T) {
	f := observedFolder(t)
	var server *Server
	var answer string
	for _, d := range runSandbox(t, observing(f, "observed-dying", true, &server), &answer) {
		if !strings.HasPrefix(d.Path, f+"/ro/") || d.Call != "mkdirat" && d.Call != "mkdir" {
			t.Errorf("%+v", d)
		}
	}
}

// A program that must not be traced is looked at, or counted; its calls are what they are.
func TestObserve_Undumpable(t *testing.T) {
	f := observedFolder(t)
	var server *Server
	var answer int
	denials := runSandbox(t, observing(f, "observed-undumpable", false, &server), &answer)
	if answer != int(unix.EROFS) || len(denials)+int(server.Unobserved()) != 1 {
		t.Errorf("%v, %d reports, %d calls not looked at", syscall.Errno(answer), len(denials), server.Unobserved())
	}
}

// Programs are executed, by vfork too, whatever the observer makes of that; signals do not interrupt what they would not
// (SA_RESTART).
func TestObserve_ExecutionAndSignals(t *testing.T) {
	for _, probe := range []string{"observed-execs", "observed-signals"} {
		f := observedFolder(t)
		var server *Server
		var answer string
		if denials := runSandbox(t, observing(f, probe, true, &server), &answer); answer != "done" || len(denials) != 0 || server.Unobserved() != 0 {
			t.Errorf("%s: %s, %v, %d calls not looked at", probe, answer, denials, server.Unobserved())
		}
	}
}

// A file system that does not answer holds back nobody but who asks it, and what is given up is counted.
func TestObserve_StalledFileSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skipf("got user %d, want root, who can mount a file system that does not answer", os.Geteuid())
	}
	f := observedFolder(t)
	must(os.Mkdir(filepath.Join(f, "w/mnt"), 0o755))
	end := mountStalled(t, filepath.Join(f, "w/mnt"))
	var server *Server
	b := startSandbox(t, observing(f, "observed-stall", false, &server))
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		b.mu.Lock()
		n := len(b.denials)
		b.mu.Unlock()
		if n == 100 && server.Unobserved() == 1 {
			break
		}
		if time.Now().After(limit) {
			t.Errorf("%d reports, %d calls not looked at", n, server.Unobserved())
			break
		}
	}
	end()
	var answer string
	b.finish(t, &answer)
	if want := unix.ENOTCONN.Error(); answer != want && answer != unix.ECONNABORTED.Error() {
		t.Errorf("the stalled call ended with %q, want %q", answer, want)
	}
}

// mountStalled mounts a file system in user space whose server says that it is there (FUSE_INIT), and then nothing
// (linux/fuse.h). end ends it.
func mountStalled(t *testing.T, dir string) (end func()) {
	t.Helper()
	const initIn, inHeader, outHeader, initOut = 26, 40, 16, 64
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("open /dev/fuse: %v", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", fd)
	if err := unix.Mount("stalled", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		t.Fatal(errors.Join(err, unix.Close(fd)))
	}
	request := make([]byte, 1<<17)
	n, err := unix.Read(fd, request)
	if err != nil || n < inHeader+8 || binary.NativeEndian.Uint32(request[4:]) != initIn {
		t.Fatalf("the first request is not FUSE_INIT: %d bytes, %v", n, err)
	}
	answer := make([]byte, outHeader+initOut)
	binary.NativeEndian.PutUint32(answer, uint32(len(answer)))
	copy(answer[8:16], request[8:16])        // unique
	copy(answer[outHeader:], request[40:48]) // the kernel's own version
	if _, err := unix.Write(fd, answer); err != nil {
		t.Fatalf("answer FUSE_INIT: %v", err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			if err := errors.Join(unix.Close(fd), unix.Unmount(dir, unix.MNT_DETACH)); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(end)
	return end
}
