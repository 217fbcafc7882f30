package broker

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

func init() {
	probes["fifos"] = func(string) any { return fifoProbe() }
	probes["killed"] = func(string) any { return killedProbe() }
	probes["crowd"] = func(string) any { return crowdProbe() }
	probes["one"] = func(string) any { return oneProbe() }
	probes["child"] = func(string) any {
		// It waits for a reader that never comes.
		_, err := unix.Open("fifo0", unix.O_CREAT|unix.O_WRONLY, 0o600)
		return fmt.Sprint(err)
	}
}

// openWaiting opens a FIFO on a thread of its own, which is left to end, and gives that thread's number first.
func openWaiting(name string, flags int) (tid int, result <-chan error) {
	number, answer := make(chan int), make(chan error, 1)
	path, err := unix.BytePtrFromString(name)
	if err != nil {
		panic(err)
	}
	go func() {
		runtime.LockOSThread()
		number <- unix.Gettid()
		fd, _, errno := syscall.Syscall6(unix.SYS_OPENAT, uintptr(unix.AT_FDCWD&(1<<64-1)), pointerOf(path), uintptr(flags), 0o600, 0, 0)
		runtime.KeepAlive(path)
		if errno != 0 {
			answer <- errno
			return
		}
		unix.Close(int(fd))
		answer <- nil
	}()
	return <-number, answer
}

// fifoProbe has as many threads wait for FIFOs as there are workers but one, makes names meanwhile, and then ends the
// waiting: by the other end, by a signal with and without SA_RESTART.
func fifoProbe() map[string]string {
	result := map[string]string{}
	const many = 8
	var waiting []<-chan error
	for i := range many {
		_, c := openWaiting(fmt.Sprintf("fifo%d", i), unix.O_CREAT|unix.O_WRONLY)
		waiting = append(waiting, c)
	}
	for i := range 100 {
		name := fmt.Sprintf("made%d", i)
		if err := unix.Mkdir(name, 0o700); err != nil {
			result["mkdir"] = err.Error()
		}
	}
	for i, c := range waiting {
		select {
		case err := <-c:
			result["early"] = fmt.Sprint(i, err)
		default:
		}
		fd, err := unix.Open(fmt.Sprintf("fifo%d", i), unix.O_RDONLY, 0)
		if err != nil {
			result["reader"] = err.Error()
		}
		if err := <-c; err != nil {
			result["writer"] = err.Error()
		}
		unix.Close(fd)
	}
	// The Go runtime handles every signal with SA_RESTART.
	got := make(chan os.Signal, 1)
	signal.Notify(got, unix.SIGUSR1)
	tid, c := openWaiting("fifo0", unix.O_CREAT|unix.O_RDONLY)
	waitForCall(tid)
	for range 3 {
		if err := unix.Tgkill(os.Getpid(), tid, unix.SIGUSR1); err != nil {
			result["tgkill"] = err.Error()
		}
		<-got
	}
	select {
	case err := <-c:
		result["restart"] = fmt.Sprint(err)
	default:
	}
	fd, err := unix.Open("fifo0", unix.O_WRONLY, 0)
	if err != nil {
		result["second writer"] = err.Error()
	}
	if err := <-c; err != nil {
		result["after restart"] = err.Error()
	}
	unix.Close(fd)
	withoutRestart(unix.SIGUSR2)
	tid, c = openWaiting("fifo0", unix.O_CREAT|unix.O_RDONLY)
	waitForCall(tid)
	if err := unix.Tgkill(os.Getpid(), tid, unix.SIGUSR2); err != nil {
		result["tgkill"] = err.Error()
	}
	result["without restart"] = fmt.Sprint(<-c)
	return result
}

// waitForCall waits until a thread is in a system call that the filter has taken.
func waitForCall(tid int) {
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", tid))
		if err != nil || strings.HasPrefix(string(text), fmt.Sprint(unix.SYS_OPENAT, " ")) {
			return
		}
		runtime.Gosched()
	}
}

func TestWait_FIFOsStallNobodyAndSignalsEndThem(t *testing.T) {
	for name, judge := range map[string]Judge{"fast": &testJudge{}, "slow": &testJudge{suspect: anything}} {
		t.Run(name, func(t *testing.T) {
			folder := tempFolder(t)
			for i := range 8 {
				if err := unix.Mkfifo(fmt.Sprintf("%s/fifo%d", folder, i), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var got map[string]string
			runSandbox(t, setup{judge: judge, probe: "fifos", folder: folder, workers: 10}, &got)
			if len(got) != 1 || got["without restart"] != unix.EINTR.Error() {
				t.Errorf("%v, want EINTR without SA_RESTART and nothing else", got)
			}
		})
	}
}

// killedProbe starts processes that wait for a FIFO, kills them, and makes names after that.
func killedProbe() []string {
	var result []string
	self, err := os.Executable()
	if err != nil {
		return []string{err.Error()}
	}
	for range 5 {
		p, err := os.StartProcess(self, []string{self}, &os.ProcAttr{Env: []string{envProbe + "=child"}, Files: []*os.File{os.Stdin, nil, os.Stderr}})
		if err != nil {
			return []string{err.Error()}
		}
		for {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", p.Pid))
			if err != nil || strings.Contains(string(text), fmt.Sprintf("%d 0x", unix.SYS_OPENAT)) {
				break
			}
			runtime.Gosched()
		}
		if err := p.Kill(); err != nil {
			result = append(result, err.Error())
		}
		if _, err := p.Wait(); err != nil {
			result = append(result, err.Error())
		}
	}
	if err := unix.Mkdir("after", 0o700); err != nil {
		result = append(result, err.Error())
	}
	return result
}

func TestWait_KilledCallersLeaveNothingBehind(t *testing.T) {
	folder := tempFolder(t)
	if err := unix.Mkfifo(folder+"/fifo0", 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	runSandbox(t, setup{judge: &testJudge{}, probe: "killed", folder: folder, workers: 2}, &got)
	if len(got) > 0 {
		t.Error(got)
	}
}

// crowdProbe makes names in many threads at once, each in its own working directory and with its own umask.
func crowdProbe() []string {
	var mu sync.Mutex
	var result []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		result = append(result, fmt.Sprintf(format, args...))
	}
	var wait sync.WaitGroup
	for n := range 16 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			runtime.LockOSThread()
			dir := fmt.Sprintf("thread%d", n)
			if err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Mkdir(dir, 0o700), unix.Chdir(dir)); err != nil {
				note("%v", err)
				return
			}
			unix.Umask(n)
			for i := range 100 {
				name := fmt.Sprintf("f%d", i)
				fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o777)
				if err != nil {
					note("%s/%s: %v", dir, name, err)
					continue
				}
				var st, again unix.Stat_t
				err = errors.Join(unix.Fstat(fd, &st), unix.Stat(name, &again), unix.Close(fd))
				if err != nil || st.Mode&0o777 != uint32(0o777&^n) || st.Ino != again.Ino {
					note("%s/%s: mode %o, %v", dir, name, st.Mode, err)
				}
			}
		}()
	}
	wait.Wait()
	return result
}

func TestCrowd_ThreadsHaveTheirOwnDirectoryAndUmask(t *testing.T) {
	for _, workers := range []int{1, 4, 64} {
		folder := tempFolder(t)
		var got []string
		runSandbox(t, setup{judge: &testJudge{suspect: func(n string) bool { return strings.HasSuffix(n, "7") }}, probe: "crowd", folder: folder, workers: workers}, &got)
		if len(got) > 0 {
			t.Error(got)
		}
	}
}

func oneProbe() map[string]string {
	first := fmt.Sprint(unix.Mkdir("one", 0o700))
	return map[string]string{"first": first, "second": fmt.Sprint(unix.Mkdir("two", 0o700))}
}

// faultyJudge does something wrong with one name.
type faultyJudge struct {
	testJudge
	fault func()
}

func (j *faultyJudge) Suspect(name string) bool {
	if name == "one" {
		j.fault()
	}
	return false
}

// A mistake of srt's own refuses the call, is reported, and leaves the next one alone.
func TestFault_FailsTheCallAndIsReported(t *testing.T) {
	errTest := errors.New("no hand today")
	for name, s := range map[string]setup{
		"panic": {judge: &faultyJudge{fault: func() { panic("test") }}},
		"no hand": {judge: &testJudge{}, mutate: func(c *Config) {
			start, done := c.NewHand, false
			c.NewHand = func() (Hand, error) {
				if !done {
					done = true
					return nil, errTest
				}
				return start()
			}
		}},
		"killed hand": {judge: &testJudge{}, mutate: func(c *Config) {
			start, done := c.NewHand, false
			c.NewHand = func() (Hand, error) {
				h, err := start()
				if err == nil && !done {
					done = true
					err = h.Kill()
				}
				return h, err
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s.probe, s.folder, s.workers = "one", tempFolder(t), 1
			b := startSandbox(t, s)
			var got map[string]string
			denials := b.finishWith(t, &got)
			if got["first"] != unix.EIO.Error() || got["second"] != "<nil>" {
				t.Errorf("%v, want EIO once", got)
			}
			if len(denials) != 1 || denials[0].Err == nil || denials[0].Call != "mkdirat" && denials[0].Call != "mkdir" || denials[0].Path != "one" {
				t.Errorf("reports %+v", denials)
			}
			if _, err := os.Lstat(s.folder + "/one"); !os.IsNotExist(err) {
				t.Errorf("it was made all the same: %v", err)
			}
		})
	}
}

// Close ends a Server in the middle of calls that wait.
func TestClose_EndsWhatWaits(t *testing.T) {
	folder := tempFolder(t)
	if err := unix.Mkfifo(folder+"/fifo0", 0o600); err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{}, 8)
	b := startSandbox(t, setup{judge: &testJudge{}, probe: "child", folder: folder, mutate: func(c *Config) {
		start := c.NewHand
		c.NewHand = func() (Hand, error) {
			h, err := start()
			return &watchedHand{h, started}, err
		}
	}})
	<-started
	<-started // the second program is the opening that waits
	if err := b.process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := b.server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-b.served; err != nil {
		t.Error(err)
	}
	b.out.Close()
	var killed *ns.KilledError
	if _, err := b.process.Wait(); !errors.As(err, &killed) {
		t.Error(err)
	}
}

// watchedHand tells of each program that it runs.
type watchedHand struct {
	Hand
	started chan<- struct{}
}

func (h *watchedHand) tell() {
	select {
	case h.started <- struct{}{}:
	default:
	}
}

func (h *watchedHand) Do() (ns.HandResult, error) {
	h.tell()
	return h.Hand.Do()
}

func (h *watchedHand) Begin() error {
	h.tell()
	return h.Hand.Begin()
}

// A Server that nobody calls starts no hand (a true never pays for one).
func TestServe_StartsNoHandWithoutACall(t *testing.T) {
	var got any
	runSandbox(t, setup{judge: &testJudge{}, probe: "idle", folder: tempFolder(t), mutate: func(c *Config) {
		c.NewHand = func() (Hand, error) {
			t.Error("a hand was started")
			return nil, errors.New("none is needed")
		}
	}}, &got)
}
