package ns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asks is a filter that puts one system call to the listener and allows the rest.
func asks(number uint32) []byte {
	return encodeFilter(
		unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	)
}

// refusesIPv6 is a filter under which socket(2) says what a kernel without IPv6 does.
func refusesIPv6() []byte {
	return encodeFilter(
		unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SOCKET, Jf: 3},
		unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AF_INET6, Jf: 1},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	)
}

// encodeFilter is an array of struct sock_filter (seccomp(2)).
func encodeFilter(insns ...unix.SockFilter) []byte {
	var b []byte
	for _, in := range insns {
		b = binary.NativeEndian.AppendUint16(b, in.Code)
		b = append(b, in.Jt, in.Jf)
		b = binary.NativeEndian.AppendUint32(b, in.K)
	}
	return b
}

// The command's call reaches the host side through the listener that pid 1 sent, and the host side's answer the command.
func TestFilterWithListener_FS30(t *testing.T) {
	p := newProgram(t)
	p.NoNewPrivs()
	listener := p.FilterWithListener("mkdir", asks(mkdirNumber))
	p.SendFiles(0, "the listener", listener)
	p.Close(listener)
	l := minimal(p, "/usr/bin/python3", "-c", pythonMkdir)
	_, w := l.output(t)
	process, err := l.start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer closeFiles(process)
	if len(process.Files) == 0 || process.Files[0] == nil {
		t.Fatal("no listener came")
	}
	answerOne(t, process.Files[0], mkdirNumber, unix.EDQUOT)
	if st, err := process.Wait(); err != nil || st.Code != int(unix.EDQUOT) {
		t.Errorf("mkdir was answered %d (%v), want the host side's EDQUOT (%d)", st.Code, err, unix.EDQUOT)
	}
}

// pythonMkdir makes one directory and exits with the error number.
var pythonMkdir = fmt.Sprintf(`
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
os._exit(ctypes.get_errno() if libc.syscall(%d, -100, b"/nowhere", 0o755) else 0)`, mkdirNumber)

// answerOne receives one notification of a call and refuses it.
func answerOne(t *testing.T, listener *os.File, number uint32, errno syscall.Errno) {
	t.Helper()
	var request [80]byte // struct seccomp_notif
	ioctl := func(what string, op uint, at unsafe.Pointer) {
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, listener.Fd(), uintptr(op), uintptr(at)); e != 0 {
			t.Fatalf("%s: %v", what, e)
		}
	}
	ioctl("receive", unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&request))
	if got := binary.NativeEndian.Uint32(request[16:]); got != number {
		t.Errorf("call %d was put to the host side, want %d", got, number)
	}
	var answer [24]byte // struct seccomp_notif_resp
	copy(answer[:], request[:8])
	binary.NativeEndian.PutUint32(answer[16:], uint32(-int32(errno)))
	ioctl("answer", unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer))
	runtime.KeepAlive(listener)
}

// Where another listener is installed the start ends with a StepError that names EBUSY, and no command runs.
func TestFilterWithListener_ASecondIsRefused_FS54(t *testing.T) {
	p := newProgram(t)
	p.NoNewPrivs()
	p.FilterWithListener("outer", asks(mkdirNumber))
	p.FilterWithListener("inner", asks(mkdirNumber))
	out, _, err := run(t, minimal(p, "/bin/echo", "ran"))
	var e *StepError
	if !errors.As(err, &e) || !errors.Is(err, unix.EBUSY) || e.Subject != "inner" || out != "" {
		t.Errorf("got %q and %v, want a StepError of the filter inner with EBUSY", out, err)
	}
}

// mkdirNumber is a call that both architectures have.
const mkdirNumber = unix.SYS_MKDIRAT
