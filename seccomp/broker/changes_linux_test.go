package broker

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

func init() {
	probes["rights"] = func(string) any { return rightsProbe() }
	probes["umasks"] = func(string) any { return umasksProbe() }
}

// watching is the beginning of a filter that puts the calls of Config.Watched to the listener.
func watching() (program []byte) {
	insn := func(code uint16, jt uint8, k uint32) {
		program = binary.NativeEndian.AppendUint16(program, code)
		program = append(program, jt, 0)
		program = binary.NativeEndian.AppendUint32(program, k)
	}
	calls := []uint32{unix.SYS_UMASK, unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETREUID, unix.SYS_SETREGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID,
		unix.SYS_SETFSUID, unix.SYS_SETFSGID, unix.SYS_SETGROUPS, unix.SYS_CAPSET}
	insn(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0)
	for i, nr := range calls {
		insn(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, uint8(len(calls)-i), nr)
	}
	insn(unix.BPF_JMP|unix.BPF_JA, 0, 1)
	insn(unix.BPF_RET|unix.BPF_K, 0, unix.SECCOMP_RET_USER_NOTIF)
	return program
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
	var ch changes
	now := ch.now()
	if now == 0 || !ch.holds(now, 1) {
		t.Fatal("nothing has changed")
	}
	ch.begin(5, 1)
	if ch.holds(now, 1) || ch.holds(now, 2) || ch.holds(ch.now(), 1) {
		t.Error("it holds while thread 5 of process 1 is changing")
	}
	if now = ch.now(); !ch.holds(now, 2) {
		t.Error("another process is not affected by what is read now")
	}
	ch.settled(6)
	if !ch.holds(now, 2) || ch.holds(now, 1) {
		t.Error("thread 6 has changed nothing")
	}
	ch.settled(5)
	if ch.holds(now, 2) || !ch.holds(ch.now(), 1) {
		t.Error("after the change what is read holds, and not what was read before")
	}
	for tid := range 3 * maxChanging {
		ch.begin(tid, tid)
	}
	if len(ch.changing) > maxChanging {
		t.Errorf("%d threads are remembered", len(ch.changing))
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
		"user with something":  {status{uids: four(5), effective: 1}, false},
		"other file-system id": {status{uids: [4]uint32{0, 0, 0, 5}, effective: 0xff}, false},
		"other saved group":    {status{gids: [4]uint32{0, 0, 3, 0}, effective: 0xff}, false},
	} {
		if got := c.status.steady(all); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
