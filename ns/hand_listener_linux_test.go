package ns

import (
	"encoding/binary"
	"errors"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestHandAnswersAListener lets a hand answer a call of the command: it adds a descriptor of its own to the caller, closes
// it, and only then lets the caller go on.
func TestHandAnswersAListener(t *testing.T) {
	p := newProgram(t)
	p.NoNewPrivs()
	listener := p.FilterWithListener("sync", asks(unix.SYS_SYNC))
	p.SendFiles(0, "the listener", listener)
	l := minimal(p, "/bin/sync")
	_, w := l.output(t)
	prepared, err := Prepare(&l.Config, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := prepared.AllowHands(); err != nil {
		t.Fatal(errors.Join(err, prepared.Close()))
	}
	proc, err := prepared.Start(&l.Command)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer closeFiles(proc)
	h, err := StartHand(HandConfig{Process: proc, Unrestricted: true, Listener: proc.Files[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()

	// struct seccomp_notif, _notif_addfd and _notif_resp of linux/seccomp.h: the id comes first in each.
	var notif [80]byte
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, proc.Files[0].Fd(), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&notif))); errno != 0 {
		t.Fatal(errno)
	}
	const addFD = 0x40182103 // SECCOMP_IOCTL_NOTIF_ADDFD
	program := h.Program()
	f := openAt(program, "/", unix.O_RDONLY) // an O_PATH descriptor cannot be added: EBADF
	add, b := program.Buffer(24)
	copy(b, notif[:8])
	program.Store(add, 12, f) // srcfd
	given := program.Call("add to the caller", "", syscall.SYS_IOCTL, Int(HandListener), Int(addFD), add)
	program.Close(f)
	answer, b := program.Buffer(24)
	copy(b, notif[:8])
	failure := -int32(unix.EXDEV)
	binary.NativeEndian.PutUint32(b[16:], uint32(failure))
	program.Call("answer the caller", "", syscall.SYS_IOCTL, Int(HandListener), Int(unix.SECCOMP_IOCTL_NOTIF_SEND), answer)
	res := must(t, h)
	if fd, ok := res.Value(given); !ok || fd != 3 {
		t.Errorf("the caller got descriptor %d, want 3", fd)
	}
	if _, err := proc.Wait(); err != nil {
		t.Error(err)
	}
}

// TestFilterWithListenerOfAnother_FS54 loads a second filter with a listener, as in a sandbox within a sandbox: EBUSY, and the rest
// of the program goes another way.
func TestFilterWithListenerOfAnother_FS54(t *testing.T) {
	p := newProgram(t)
	p.NoNewPrivs()
	first := p.FilterWithListener("first", asks(unix.SYS_SYNC))
	second := p.FilterWithListener("second", asks(unix.SYS_SYNC))
	p.Tolerate(unix.EBUSY)
	p.Call("write", "", syscall.SYS_WRITE, Int(1), p.Str("wrong"), Int(5))
	p.OnlyIf(second)
	p.Call("write", "", syscall.SYS_WRITE, Int(1), p.Str("busy"), Int(4))
	p.Unless(second)
	p.Close(first)
	out, _, err := run(t, minimal(p, "/bin/true"))
	if err != nil || strings.TrimSpace(out) != "busy" {
		t.Errorf("%q, %v", out, err)
	}
}
