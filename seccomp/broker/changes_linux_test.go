package broker

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

func init() {
	probes["rights"] = func(string) any { return rightsProbe() }
	if os.Getenv(envProbe) == "parting" {
		runtime.LockOSThread() // the first thread is the main goroutine's
	}
	probes["parting"] = func(folder string) any { return partingProbe(folder) }
	probes["parted"] = func(string) any { return makeAndLook("parted") }
	probes["umasks"] = func(string) any { return umasksProbe() }
}

// rightsProbe makes files with changing ids, groups, capabilities and umask.
func rightsProbe() []string {
	runtime.LockOSThread()
	var lines []string
	n := 0
	try := func(what string) {
		for _, dir := range []string{".", "others", "shut"} {
			n++
			name := fmt.Sprintf("%s/f%d", dir, n)
			fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o666)
			text := fmt.Sprint(err)
			if err == nil {
				var st unix.Stat_t
				if err := unix.Fstat(fd, &st); err != nil {
					panic(err)
				}
				text = fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid)
				unix.Close(fd)
			}
			lines = append(lines, what+" "+dir+": "+text)
		}
	}
	raw := func(what string, trap, a, b, c uintptr) {
		if _, _, errno := unix.RawSyscall(trap, a, b, c); errno != 0 {
			lines = append(lines, what+": "+errno.Error())
		}
		try(what)
	}
	try("first")
	unix.Umask(0o027)
	try("umask")
	groups := []uint32{7, 8}
	raw("fsgid", unix.SYS_SETFSGID, 7, 0, 0)
	raw("fsuid", unix.SYS_SETFSUID, 1000, 0, 0)
	raw("fsuid back", unix.SYS_SETFSUID, 0, 0, 0)
	raw("fsgid back", unix.SYS_SETFSGID, 0, 0, 0)
	raw("groups", unix.SYS_SETGROUPS, 2, pointerOfWords(groups), 0)
	raw("euid", unix.SYS_SETRESUID, ^uintptr(0), 1000, ^uintptr(0))
	raw("euid back", unix.SYS_SETRESUID, ^uintptr(0), 0, ^uintptr(0))
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		panic(err)
	}
	full := data
	data[0].Effective &^= 1 << unix.CAP_DAC_OVERRIDE
	if err := unix.Capset(&head, &data[0]); err != nil {
		panic(err)
	}
	try("less capable")
	if err := unix.Capset(&head, &full[0]); err != nil {
		panic(err)
	}
	try("capable again")
	raw("gid", unix.SYS_SETRESGID, 1000, 1000, 1000)
	raw("uid", unix.SYS_SETRESUID, 1000, 1000, 1000)
	runtime.KeepAlive(groups)
	return lines
}

// TestRights_AreTheCallers compares with the kernel what threads with changing rights may make and whose it is.
func TestRights_AreTheCallers_FS30(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("got an ordinary user, want root: others cannot change their rights")
	}
	run := func(s setup) (got []string) {
		folder := tempFolder(t)
		t.Chdir(folder)
		for _, err := range []error{os.Chmod(".", 0o777), os.Mkdir("others", 0o755), os.Mkdir("shut", 0o070), os.Chown("others", 1000, 1000), os.Chown("shut", 0, 8)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		s.probe, s.folder = "rights", folder
		runSandbox(t, s, &got)
		return got
	}
	want := run(setup{})
	if len(slices.Compact(slices.Sorted(slices.Values(want)))) < 20 || !strings.Contains(strings.Join(want, "\n"), "denied") {
		t.Fatalf("the probe shows too little: %q", want)
	}
	for name, s := range map[string]setup{"asked": {judge: &testJudge{}}, "watched": {judge: &testJudge{}, watched: true},
		"watched and slow": {judge: &testJudge{suspect: anything}, watched: true}} {
		if d := diffLines(want, run(s)); d != "" {
			t.Errorf("%s (-without, +with):\n%s", name, d)
		}
	}
}

// partingProbe lets a thread take other rights and another umask than its process's first thread, and then execute a
// program, which takes it that thread's number.
func partingProbe(folder string) []string {
	makeAndLook("first") // on whichever thread
	ready := make(chan struct{})
	go func() { // with the goroutine's thread
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			panic("the first thread is locked to the main goroutine")
		}
		fatal(unix.Unshare(unix.CLONE_FS))
		unix.Umask(0o077)
		if os.Geteuid() == 0 {
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 1000, 1000, 1000); errno != 0 {
				panic(errno)
			}
		}
		makeAndLook("second")
		ready <- struct{}{}
		<-ready
		fatal(os.Setenv(envProbe, "parted"))
		panic(syscall.Exec("/proc/self/exe", os.Args[:1], os.Environ()))
	}()
	<-ready
	makeAndLook("third")
	makeAndLook("fourth")
	ready <- struct{}{}
	select {}
}

// makeAndLook makes a file and tells its mode and owner.
func makeAndLook(name string) string {
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o666)
	if err != nil {
		return err.Error()
	}
	var st unix.Stat_t
	fatal(unix.Fstat(fd, &st))
	fatal(unix.Close(fd))
	return fmt.Sprintf("%o %d", st.Mode, st.Uid)
}

func TestRights_ThreadThatExecutesAProgram(t *testing.T) {
	run := func(s setup) (got string) {
		s.probe, s.folder = "parting", tempFolder(t)
		if err := os.Chmod(s.folder, 0o777); err != nil {
			t.Fatal(err)
		}
		runSandbox(t, s, &got)
		return got
	}
	want := run(setup{})
	if !strings.HasPrefix(want, "100600") {
		t.Fatalf("without a broker it is %q", want)
	}
	for name, s := range map[string]setup{"asked": {judge: &testJudge{}}, "watched": {judge: &testJudge{}, watched: true}} {
		if got := run(s); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// umasksProbe changes the umask of a process in one thread while others make files: each file's mode must be one that was
// in force, and after the change the new one.
func umasksProbe() []string {
	var lines []string
	var mu sync.Mutex
	for round := range 50 {
		old, now := round%8, (round+1)%8
		unix.Umask(old)
		var wait sync.WaitGroup
		for n := range 3 {
			wait.Add(1)
			go func() {
				defer wait.Done()
				for i := range 5 {
					name := fmt.Sprintf("u%d-%d-%d", round, n, i)
					fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o777)
					var st unix.Stat_t
					if err == nil {
						err = unix.Fstat(fd, &st)
						unix.Close(fd)
					}
					if mode := st.Mode & 0o777; err != nil || mode != uint32(0o777&^old) && mode != uint32(0o777&^now) {
						mu.Lock()
						lines = append(lines, fmt.Sprintf("%s: %o, %v", name, mode, err))
						mu.Unlock()
					}
				}
			}()
		}
		unix.Umask(now)
		wait.Wait()
		fd, err := unix.Open(fmt.Sprintf("after%d", round), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o777)
		var st unix.Stat_t
		if err == nil {
			err = unix.Fstat(fd, &st)
			unix.Close(fd)
		}
		if err != nil || st.Mode&0o777 != uint32(0o777&^now) {
			lines = append(lines, fmt.Sprintf("after %o: %o, %v", now, st.Mode, err))
		}
	}
	return lines
}

func TestUmask_HoldsFromTheChangeOn(t *testing.T) {
	for _, watched := range []bool{false, true} {
		var got []string
		runSandbox(t, setup{judge: &testJudge{}, probe: "umasks", folder: tempFolder(t), watched: watched}, &got)
		if len(got) > 0 {
			t.Errorf("watched %t: %q", watched, got)
		}
	}
}

func TestChanges_HoldUntilTheNextOne(t *testing.T) {
	self := os.Getpid()
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		_ = other.Process.Kill()
		_ = other.Wait() // says that it was killed
	}
	defer end()
	var ch changes
	now := ch.now()
	if now == 0 || !ch.holds(now) || !ch.mayKeep(now, self, self) {
		t.Fatal("nothing has changed")
	}
	ch.begin(self, self, false)
	if ch.holds(now) || ch.mayKeep(now, other.Process.Pid, other.Process.Pid) || ch.mayKeep(ch.now(), self, self) {
		t.Error("it holds while this thread is changing")
	}
	now = ch.now()
	if !ch.mayKeep(now, other.Process.Pid, other.Process.Pid) {
		t.Error("a process with a umask of its own is not affected by what is read now")
	}
	ch.settled(other.Process.Pid)
	if !ch.holds(now) {
		t.Error("the other process has changed nothing")
	}
	ch.settled(self)
	if ch.holds(now) || !ch.mayKeep(ch.now(), self, self) {
		t.Error("after the change what is read holds, and not what was read before")
	}
	ch.begin(other.Process.Pid, other.Process.Pid, true)
	ch.settled(other.Process.Pid)
	if now = ch.now(); ch.mayKeep(now, other.Process.Pid, other.Process.Pid) || !ch.mayKeep(now, 1<<30, other.Process.Pid) {
		t.Error("the number of the first thread of a process that has parted is not known by, those of others are")
	}
	ch.begin(other.Process.Pid, other.Process.Pid, true)
	end()
	if now = ch.now(); ch.mayKeep(now, self, self) || ch.holds(now) || !ch.mayKeep(ch.now(), self, self) {
		t.Error("the end of a thread ends its change, of which nothing is known")
	}
}

func TestChanges_Crowds(t *testing.T) {
	var ch changes
	for tid := range 3 * maxChanging {
		ch.begin(1<<30+tid, 1<<30+tid, true) // none of which is alive
	}
	if len(ch.changing) > maxChanging || len(ch.parted) > maxChanging || ch.blind || int(ch.pending.Load()) != len(ch.changing) {
		t.Errorf("%d threads and %d processes are remembered, blind %t", len(ch.changing), len(ch.parted), ch.blind)
	}
	ch = changes{changing: map[int]int{}, parted: map[int]bool{}}
	for tid := range maxChanging {
		ch.changing[tid] = -1 // of which nobody can say that it has ended
	}
	ch.begin(os.Getpid(), os.Getpid(), false)
	if ch.mayKeep(ch.now(), 1<<30, 1<<30) {
		t.Error("too many threads are changing, and something is kept")
	}
}

func TestSteady_WhatSurvivesExecution(t *testing.T) {
	const all = ns.Capabilities(0xff)
	four := func(n uint32) [4]uint32 { return [4]uint32{n, n, n, n} }
	for name, c := range map[string]struct {
		status status
		want   bool
	}{
		"root":                 {status{effective: 0xff}, true},
		"root with less":       {status{effective: 0xfe}, false},
		"user":                 {status{uids: four(5), gids: four(5)}, true},
		"user with a reserve":  {status{uids: four(5), gids: four(5), permitted: 1}, false},
		"user with something":  {status{uids: four(5), effective: 1}, false},
		"other file-system id": {status{uids: [4]uint32{0, 0, 0, 5}, effective: 0xff}, false},
		"other saved group":    {status{gids: [4]uint32{0, 0, 3, 0}, effective: 0xff}, false},
	} {
		if got := c.status.steady(all); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
