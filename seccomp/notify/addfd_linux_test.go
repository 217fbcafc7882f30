package notify

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func askOpenat() []byte { return answers(unix.SYS_OPENAT, unix.SECCOMP_RET_USER_NOTIF) }

func someFile(t *testing.T) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("from outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// The caller's open gives a descriptor of what the holder of the listener opened, with or without close-on-exec.
func TestAddFD_AnswersAnOpen_FS30(t *testing.T) {
	f := someFile(t)
	for _, c := range []struct {
		flags, target, targetFlags uint32
		want                       string
	}{
		{AddSend, 0, 0, "0 from outside"},
		{AddSend, 0, unix.O_CLOEXEC, "1 from outside"},
		{AddSend | AddSet, 55, unix.O_CLOEXEC, "1 from outside"},
	} {
		s := supervise(t, modeOpen, "", askOpenat())
		n := s.mustReceive(t)
		if n.Args[2]&unix.O_CREAT == 0 {
			t.Fatalf("received %+v, want an openat that creates", n)
		}
		fd, err := s.AddFD(AddFD{ID: n.ID, Flags: c.flags, Source: uint32(f.Fd()), Target: c.target, TargetFlags: c.targetFlags})
		if err != nil {
			t.Fatal(err)
		}
		if c.target != 0 && fd != int(c.target) {
			t.Errorf("got descriptor %d, want %d", fd, c.target)
		}
		if got, want := s.wait(t), fmt.Sprintf("%d %s\n", fd, c.want); got != want {
			t.Errorf("the child saw %q, want %q", got, want)
		}
	}
}

// Without AddSend the call goes on waiting, and is answered with the number.
func TestAddFD_InTwoSteps(t *testing.T) {
	f := someFile(t)
	s := supervise(t, modeOpen, "", askOpenat())
	n := s.mustReceive(t)
	fd, err := s.AddFD(AddFD{ID: n.ID, Source: uint32(f.Fd())})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Respond(n.ID, int64(fd), 0); err != nil {
		t.Fatal(err)
	}
	if got, want := s.wait(t), fmt.Sprintf("%d 0 from outside\n", fd); got != want {
		t.Errorf("the child saw %q, want %q", got, want)
	}
}

// The caller's own limit of open files holds.
func TestAddFD_KeepsTheCallersLimit(t *testing.T) {
	f := someFile(t)
	s := supervise(t, modeOpen, "", askOpenat())
	n := s.mustReceive(t)
	limit := unix.Rlimit{Cur: 3, Max: 3}
	if err := unix.Prlimit(s.cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddFD(AddFD{ID: n.ID, Flags: AddSend, Source: uint32(f.Fd())}); !errors.Is(err, unix.EMFILE) {
		t.Errorf("got %v, want EMFILE", err)
	}
	if err := s.Respond(n.ID, 0, unix.EMFILE); err != nil {
		t.Errorf("the call could not be answered after that: %v", err)
	}
	if got := s.wait(t); got != "open: too many open files\n" {
		t.Errorf("the child saw %q", got)
	}
}

// AddFD leaves the thread's signal mask as it was.
func TestAddFD_RestoresTheSignalMask(t *testing.T) {
	s := supervise(t, modeOpen, "", askOpenat())
	n := s.mustReceive(t)
	done := make(chan [2]unix.Sigset_t)
	go onThrownAwayThread(func() {
		var masks [2]unix.Sigset_t
		read := func(m *unix.Sigset_t) {
			if err := unix.PthreadSigmask(unix.SIG_BLOCK, nil, m); err != nil {
				t.Error(err)
			}
		}
		read(&masks[0])
		if _, err := s.AddFD(AddFD{ID: n.ID, Flags: AddSend, Source: ^uint32(0)}); !errors.Is(err, unix.EBADF) {
			t.Errorf("an unopened descriptor: %v, want EBADF", err)
		}
		read(&masks[1])
		done <- masks
	})
	if masks := <-done; masks[0] != masks[1] {
		t.Errorf("the mask was %v and is %v", masks[0], masks[1])
	}
	if err := s.Respond(n.ID, 0, unix.EACCES); err != nil {
		t.Error(err)
	}
	s.wait(t)
}

// What programs of system calls are given is what the kernel's header lays down, field by field.
func TestBytes_AreTheKernelsStructures(t *testing.T) {
	a := AddFD{ID: 0x1122334455667788, Flags: AddSend, Source: 7, Target: 9, TargetFlags: unix.O_CLOEXEC}
	if got, want := a.Bytes(), memory(unsafe.Pointer(&a), unsafe.Sizeof(a)); !bytes.Equal(got, want) || len(got) != AddFDSize {
		t.Errorf("AddFD: % x, in memory % x", got, want)
	}
	r := Response{ID: 0x1122334455667788, Val: -7, Error: -int32(unix.EPERM), Flags: FlagContinue}
	if got, want := r.Bytes(), memory(unsafe.Pointer(&r), unsafe.Sizeof(r)); !bytes.Equal(got, want) || len(got) != ResponseSize {
		t.Errorf("Response: % x, in memory % x", got, want)
	}
	var n Notification
	for name, c := range map[string]struct{ got, want uintptr }{
		"size of seccomp_notif":    {unsafe.Sizeof(n), 80},
		"offset of pid":            {unsafe.Offsetof(n.PID), 8},
		"offset of the number":     {unsafe.Offsetof(n.Nr), 16},
		"offset of the arguments":  {unsafe.Offsetof(n.Args), 32},
		"offset of val":            {unsafe.Offsetof(r.Val), ResponseVal},
		"offset of srcfd":          {unsafe.Offsetof(a.Source), AddFDSource},
		"SECCOMP_IOCTL_NOTIF_SEND": {IoctlSend, 0xc0182101},
	} {
		if c.got != c.want {
			t.Errorf("%s: %#x, want %#x", name, c.got, c.want)
		}
	}
	if got := Result(1, 5, unix.EEXIST); got != (Response{ID: 1, Error: -int32(unix.EEXIST)}) {
		t.Errorf("a failure is %+v", got)
	}
}

func memory(at unsafe.Pointer, n uintptr) []byte { return unsafe.Slice((*byte)(at), n) }
