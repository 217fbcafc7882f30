package broker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	probes["unix-meddle"] = func(string) any { return meddleProbe() }
	probes["unix-meddle-end"] = func(string) any { return meddleEndProbe() }
	probes["unix-limit"] = func(string) any { return ownLimitProbe() }
}

// meddle takes the time limit of a socket away, again and again.
func meddle(fd int) {
	runtime.LockOSThread()
	var none unix.Timeval
	for unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &none) == nil {
	}
}

// meddled begins to connect a socket to the server without room while a thread meddles with it.
func meddled() (tid int, result <-chan error) {
	fd := inetSocket(unix.AF_UNIX, unix.SOCK_STREAM)
	go meddle(fd)
	tid, done := connectWaiting(fd)
	ended := make(chan error, 1)
	go func() {
		ended <- <-done
		unix.Close(fd)
	}()
	return tid, ended
}

// meddleProbe has more callers than there are workers meddle with sockets that are being connected.
func meddleProbe() map[string]int {
	result := map[string]int{}
	server := (&recorder{}).fill()
	var calls []<-chan error
	for range 8 {
		_, done := meddled()
		calls = append(calls, done)
	}
	for i := range 50 {
		fatal(os.Mkdir(fmt.Sprint("made", i), 0o700))
	}
	(&recorder{}).connect("own", "@nobody", unix.SOCK_STREAM, -1)
	for _, done := range calls {
		err := <-done
		errno, _ := errors.AsType[syscall.Errno](err)
		result[unix.ErrnoName(errno)]++
	}
	fatal(unix.Close(server))
	return result
}

// TestUnix_WhoChangesTheTimeLimitWaitsForNobody has threads take the time limit of sockets away that the broker has set, so
// that its hands would wait for as long as the server pleases: every call ends, and others go on meanwhile.
func TestUnix_WhoChangesTheTimeLimitWaitsForNobody_NET81(t *testing.T) {
	for name, workers := range map[string]int{"few workers": 3, "many": 0} {
		t.Run(name, func(t *testing.T) {
			var got map[string]int
			for _, d := range runSandbox(t, setup{judge: &testJudge{}, filter: connects, probe: "unix-meddle", folder: tempFolder(t), workers: workers}, &got) {
				t.Errorf("reported: %+v", d)
			}
			if got["EAGAIN"] != 8 {
				t.Errorf("%v, want EAGAIN 8 times", got)
			}
		})
	}
}

// meddleEndProbe ends while a socket is being connected to one of the host that has no room, and meddled with.
func meddleEndProbe() string {
	for range 4 {
		go func() {
			for {
				_, done := meddled()
				<-done
			}
		}()
	}
	tid, _ := meddled()
	waitForConnect(os.Getpid(), tid)
	for i := range 20 { // the first tries are over
		fatal(os.Mkdir(fmt.Sprint("made", i), 0o700))
	}
	return "done"
}

// TestUnix_NothingOutlivesTheCommand ends a command whose hands wait for a server that outlives it.
func TestUnix_NothingOutlivesTheCommand_NET81(t *testing.T) {
	for range 3 {
		folder := tempFolder(t)
		fd := inetSocket(unix.AF_UNIX, unix.SOCK_STREAM)
		defer unix.Close(fd)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(unix.Bind(fd, &unix.SockaddrUnix{Name: folder + "/full"}))
		must(os.Chmod(folder+"/full", 0o777))
		must(unix.Listen(fd, 0))
		first, err := net.Dial("unix", folder+"/full")
		must(err)
		defer first.Close()
		var got string
		runSandbox(t, setup{judge: &testJudge{}, filter: connects, probe: "unix-meddle-end", folder: folder, mutate: func(c *Config) {
			c.Unix.Allowed = func(string, uint64, uint64) bool { return true }
		}}, &got)
		if got != "done" {
			t.Error(got)
		}
	}
}

// ownLimitProbe sets a time limit of its own while a socket waits to be connected, and finds it there afterwards.
func ownLimitProbe() []string {
	r := &recorder{}
	server := r.fill()
	fd := r.unixSocket(unix.SOCK_STREAM)
	tid, done := connectWaiting(fd)
	waitForConnect(os.Getpid(), tid)
	r.check(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 1234}))
	r.accept(server)
	r.err("connect", <-done)
	r.limitOf(fd)
	return r.lines
}

// TestUnix_ATimeLimitOfTheProgramsOwnStays: what a program sets while the broker holds its limit is what it has afterwards.
func TestUnix_ATimeLimitOfTheProgramsOwnStays_NET81(t *testing.T) {
	var got []string
	for _, d := range runSandbox(t, setup{judge: &testJudge{}, filter: connects, probe: "unix-limit", folder: tempFolder(t)}, &got) {
		t.Errorf("reported: %+v", d)
	}
	if want := []string{"connect: ok", "limit 1234"}; diffLines(want, got) != "" && diffLines([]string{"connect: EAGAIN", "limit 1234"}, got) != "" {
		t.Errorf("%q, want %q (or EAGAIN for a hand that was slow)", got, want)
	}
}

// A limit that is changed and put back in the middle of things is told, whoever does it.
func TestUnixTimeouts_NET81(t *testing.T) {
	fd := inetSocket(unix.AF_UNIX, unix.SOCK_STREAM)
	defer unix.Close(fd)
	var u unixTimeouts
	set := func(sec int64) {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: sec}); err != nil {
			t.Fatal(err)
		}
	}
	limit := func() int64 {
		v, err := limitOf(fd)
		if err != nil {
			t.Fatal(err)
		}
		return v.Sec
	}
	for _, c := range []struct {
		name        string
		before      int64
		during      []int64 // what the program sets, after each of which the broker looks
		afterwards  []int64 // what it sets before the end
		want        int64
		wantChanged bool
	}{
		{"none", 0, nil, nil, 0, false},
		{"its own from before", 7, nil, nil, 7, false},
		{"taken away", 7, []int64{0}, nil, 0, true},
		{"set twice", 7, []int64{8, 9}, nil, 9, true},
		{"set at last", 7, nil, []int64{10}, 10, false},
		{"set and set", 7, []int64{8}, []int64{11}, 11, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			set(c.before)
			got, restore, err := u.shorten(fd)
			if err != nil {
				t.Fatal(err)
			}
			if got.Seconds() != float64(c.before) {
				t.Errorf("the program's limit is said to be %v", got)
			}
			changed := false
			for _, sec := range c.during {
				set(sec)
				own, errno := u.again(fd)
				if changed = own; errno != 0 {
					t.Fatal(errno)
				}
				if own, _ := u.again(fd); own {
					t.Error("it is said to have been changed once more")
				}
			}
			if changed != c.wantChanged {
				t.Errorf("changed: %v", changed)
			}
			for _, sec := range c.afterwards {
				set(sec)
			}
			restore()
			if got := limit(); got != c.want {
				t.Errorf("left is %d, want %d", got, c.want)
			}
			if len(u.saved) != 0 {
				t.Error("it is remembered still")
			}
		})
	}
}
