package broker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	probes["change-race"] = probeChangeRace
	probes["change-killed"] = probeChangeKilled
	probes["change-numbers"] = probeChangeNumbers
}

// raceRounds is how often each change is tried while what it is about is exchanged.
const raceRounds = 150

// disturbances exchange what a call is about for what must not change, and back, until told to stop. Each gives the paths at which
// changes are then tried.
var disturbances = map[string]func(stop *atomic.Bool, r *contest){
	// The directory on the way becomes a link to the one that must not change.
	"directory and link": func(stop *atomic.Bool, r *contest) {
		for !stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, "rw/toro", unix.AT_FDCWD, "rw/dir", unix.RENAME_EXCHANGE)
		}
	},
	// The file becomes a link.
	"file and link": func(stop *atomic.Bool, r *contest) {
		for !stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, "rw/tofile", unix.AT_FDCWD, "rw/dir/file", unix.RENAME_EXCHANGE)
			_ = opens("rw/dir/file", unix.O_CREAT|unix.O_WRONLY)
		}
	},
	// The file is removed, and a link made: no rename, which would be kept off while another call is judged.
	"link in the place of the file": func(stop *atomic.Bool, r *contest) {
		for !stop.Load() {
			_ = unix.Unlink("rw/dir/file")
			_ = unix.Symlink("../../ro/file", "rw/dir/file")
			_ = unix.Unlink("rw/dir/file")
			_ = opens("rw/dir/file", unix.O_CREAT|unix.O_WRONLY)
		}
	},
	// Another thread writes the path anew.
	"memory": func(stop *atomic.Bool, r *contest) {
		at := (*uint16)(unsafe.Pointer(&r.path[0]))
		rw, ro := uint16('r')|uint16('w')<<8, uint16('r')|uint16('o')<<8
		for i := 0; !stop.Load(); i++ {
			*at = rw
			if i%2 == 0 {
				*at = ro
			}
			runtime.Gosched()
		}
	},
	// Another object comes to be under the descriptor's number.
	"descriptor": func(stop *atomic.Bool, r *contest) {
		for !stop.Load() {
			_ = unix.Dup3(r.roFile, r.file, 0)
			_ = unix.Dup3(r.roDir, r.dir, 0)
			_ = unix.Dup3(r.rwFile, r.file, 0)
			_ = unix.Dup3(r.rwDir, r.dir, 0)
		}
	},
	// The directory that the call is about is renamed onto names that must not be, and around.
	"moving directory": func(stop *atomic.Bool, r *contest) {
		for !stop.Load() {
			_ = unix.Rename("rw/dir", "rw/kept/dir")
			_ = unix.Rename("rw/dir", "ro/dir2")
			_ = unix.Rename("rw/dir", "rw/dir2")
			_ = unix.Rename("rw/dir2", "rw/dir")
			_ = unix.Rename("rw/dir2", "rw/deep/dir")
			_ = unix.Rename("rw/deep/dir", "rw/dir")
		}
	},
}

// contest is what both sides of a race have in hand.
type contest struct {
	path                               []byte // rw/dir/file, unless it is being written
	rwFile, roFile, rwDir, roDir, file int
	dir                                int
}

// probeChangeRace changes rw/dir/file in every way while it is exchanged. It gives how many changes succeeded.
func probeChangeRace(folder string) any {
	name, err := os.ReadFile("disturbance")
	if err != nil {
		return err.Error()
	}
	r := &contest{path: append([]byte("rw/dir/file"), 0)}
	for path, fd := range map[string]*int{"rw/file": &r.rwFile, "ro/file": &r.roFile, "rw/dir": &r.rwDir, "ro/dir": &r.roDir} {
		if *fd, err = unix.Open(path, unix.O_RDONLY, 0); err != nil {
			return err.Error()
		}
	}
	r.file, _ = unix.Dup(r.rwFile)
	r.dir, _ = unix.Dup(r.rwDir)
	var stop atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		runtime.LockOSThread()
		disturbances[string(name)](&stop, r)
	})
	succeeded := 0
	for i := range raceRounds {
		for _, err := range r.changes(i) {
			if err == nil {
				succeeded++
			}
		}
	}
	stop.Store(true)
	wait.Wait()
	return succeeded
}

// changes makes one change of each kind.
func (r *contest) changes(i int) []error {
	at := uintptr(unsafe.Pointer(&r.path[0]))
	cwd := uintptr(unix.AT_FDCWD & (1<<64 - 1))
	attribute := []byte("user.x\x00")
	raw := func(trap uintptr, args ...uintptr) error {
		var a [6]uintptr
		copy(a[:], args)
		n, _, errno := syscall.Syscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno != 0 {
			return errno
		}
		if trap == unix.SYS_OPENAT {
			_, _ = unix.Write(int(n), []byte("written"))
			_ = unix.Close(int(n))
		}
		return nil
	}
	errs := []error{
		raw(unix.SYS_OPENAT, cwd, at, unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, 0o666),
		raw(unix.SYS_OPENAT, cwd, at, unix.O_RDWR),
		raw(unix.SYS_FCHMODAT, cwd, at, uintptr(0o600+i%64)),
		raw(unix.SYS_FCHOWNAT, cwd, at, uintptr(os.Getuid()), 1<<32-1, 0),
		raw(unix.SYS_UTIMENSAT, cwd, at, 0, 0),
		raw(unix.SYS_SETXATTR, at, uintptr(unsafe.Pointer(&attribute[0])), at, 4, 0),
		raw(unix.SYS_TRUNCATE, at, uintptr(i%9)),
		raw(unix.SYS_FCHMOD, uintptr(r.file), uintptr(0o600+i%64)),
		raw(unix.SYS_FSETXATTR, uintptr(r.file), uintptr(unsafe.Pointer(&attribute[0])), at, 4, 0),
		unix.Fchmodat(r.dir, "file", uint32(0o600+i%64), 0),
		opens(fmt.Sprintf("/proc/self/fd/%d", r.file), unix.O_RDWR|unix.O_TRUNC),
		unix.Mkdirat(r.dir, "made"+strconv.Itoa(i), 0o755),
		unix.Unlinkat(r.dir, "made"+strconv.Itoa(i), unix.AT_REMOVEDIR),
		raw(unix.SYS_UNLINKAT, cwd, at, 0),
	}
	runtime.KeepAlive(attribute)
	return errs
}

// TestChangeRaces_WhatIsDeniedStaysAsItIs: whatever is exchanged while a call is judged. Neither side alone would do: the hands may
// change the whole folder, and the command's own domain lets it write to devices.
func TestChangeRaces_WhatIsDeniedStaysAsItIs(t *testing.T) {
	for name := range disturbances {
		t.Run(name, func(t *testing.T) {
			folder, judge, outside := divide(t)
			if err := os.WriteFile(folder+"/disturbance", []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
			before := outside()
			var succeeded any
			b := startSandbox(t, setup{changes: judge, walls: true, watched: true, probe: "change-race", folder: folder})
			for _, d := range b.finishWith(t, &succeeded) {
				if d.Err != nil {
					t.Errorf("%s %q: %v", d.Call, d.Path, d.Err)
				}
			}
			if n, ok := succeeded.(float64); !ok || n < raceRounds {
				t.Errorf("succeeded: %v, want at least one change a round", succeeded)
			}
			if d := diffLines(before, outside()); d != "" {
				t.Errorf("changed (-before, +after):\n%s", d)
			}
		})
	}
}

// probeChangeKilled kills programs that change things, at whatever moment.
func probeChangeKilled(string) any {
	const script = `i=0; while :; do i=$((i+1)); echo x > f$1; chmod 600 f$1; mv f$1 g$1; ln -f g$1 h$1; mkdir -p d$1; rmdir d$1; rm -f g$1 h$1; done`
	for i := range 20 {
		c := exec.Command("/bin/sh", "-c", script, "sh", strconv.Itoa(i%4))
		if err := c.Start(); err != nil {
			return err.Error()
		}
		for range 1 << uint(i%12) {
			_ = unix.Chmod(".", 0o755)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	return "ok"
}

// TestChanges_CallersThatAreKilled leave nothing behind, and no failure.
func TestChanges_CallersThatAreKilled(t *testing.T) {
	var answer string
	runSandbox(t, setup{changes: &changeJudge{}, walls: true, watched: true, probe: "change-killed", folder: memoryFolder(t)}, &answer)
	if answer != "ok" {
		t.Error(answer)
	}
}

// probeChangeNumbers acts upon processes by their numbers: the folder's file others lists some of the host's.
func probeChangeNumbers(string) any {
	var wrong []string
	is := func(what string, err, want error) {
		if !errors.Is(err, want) {
			wrong = append(wrong, fmt.Sprintf("%s: %v, want %v", what, err, want))
		}
	}
	child := exec.Command("/bin/sleep", "300")
	if err := child.Start(); err != nil {
		return []string{err.Error()}
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	act := func(n int, want error) {
		var set unix.CPUSet
		is("sched_getaffinity", unix.SchedGetaffinity(0, &set), nil)
		is(fmt.Sprint("sched_setaffinity ", n), unix.SchedSetaffinity(n, &set), want)
		is(fmt.Sprint("setpriority ", n), unix.Setpriority(unix.PRIO_PROCESS, n, 19), want)
		is(fmt.Sprint("prlimit ", n), unix.Prlimit(n, unix.RLIMIT_CORE, nil, &unix.Rlimit{}), want)
		_, _, errno := syscall.RawSyscall(unix.SYS_IOPRIO_SET, ioprioProcess, uintptr(n), 3<<13)
		got := error(errno)
		if errno == 0 {
			got = nil
		}
		is(fmt.Sprint("ioprio_set ", n), got, want)
	}
	runtime.LockOSThread()
	for _, own := range []int{0, os.Getpid(), unix.Gettid(), child.Process.Pid} {
		act(own, nil)
	}
	text, err := os.ReadFile("others")
	is("read", err, nil)
	for _, other := range append(strings.Fields(string(text)), "1", strconv.Itoa(os.Getppid())) {
		n, err := strconv.Atoi(other)
		is("number", err, nil)
		act(n, unix.ESRCH)
	}
	is("group", unix.Setpriority(unix.PRIO_PGRP, 0, 19), unix.EPERM)
	is("user", unix.Setpriority(unix.PRIO_USER, 0, 19), unix.EPERM)
	is("nothing", unix.Setpriority(7, 0, 19), unix.EINVAL)
	return wrong
}

// TestChanges_ProcessesByNumber: only those of the sandbox can be acted upon, and its supervisor cannot.
func TestChanges_ProcessesByNumber(t *testing.T) {
	folder := memoryFolder(t)
	other := exec.Command("/bin/sleep", "300")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	if err := os.WriteFile(folder+"/others", fmt.Appendf(nil, "%d %d", other.Process.Pid, os.Getpid()), 0o644); err != nil {
		t.Fatal(err)
	}
	var wrong []string
	runSandbox(t, setup{changes: &changeJudge{}, probe: "change-numbers", folder: folder}, &wrong)
	for _, w := range wrong {
		t.Error(w)
	}
	if n, err := unix.Getpriority(unix.PRIO_PROCESS, other.Process.Pid); err != nil || n != 20 {
		t.Errorf("the priority of a process of the host is %d (%v)", 20-n, err)
	}
}
