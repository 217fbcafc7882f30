package notify

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrUnavailable is what every [*UnavailableError] is.
var ErrUnavailable = errors.New("system calls cannot be put to srt here")

// Reason says why no listener can be had.
type Reason uint8

// The reasons, in the order in which Available looks for them.
const (
	// ReasonUnknown is for a failure of the probe itself. It is the zero value.
	ReasonUnknown Reason = iota
	// ReasonKernel: the kernel is older than Linux 5.19, or was built without CONFIG_SECCOMP_FILTER.
	ReasonKernel
	// ReasonLayout: the kernel's structures are not those of this package.
	ReasonLayout
	// ReasonYama: kernel.yama.ptrace_scope is 3, so that no process may read another's memory.
	ReasonYama
	// ReasonListener: this process is under another listener already, an outer sandbox's or a container's.
	ReasonListener
	// ReasonRefused: an outer filter refuses the loading of filters.
	ReasonRefused
	// ReasonProc: /proc counts processes as another pid namespace does than this process's, so that it has another one's
	// directory at the number of a caller.
	ReasonProc
)

// reasons is what each means and what to do, in a sentence or two.
var reasons = [...]string{
	ReasonUnknown: "Whether this process can have a system call listener could not be found out",
	ReasonKernel: "The kernel has no system call listener that srt can use " +
		"(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV): Linux 5.19 or later is needed",
	ReasonLayout: "The kernel's system call notifications have another layout than this version of srt knows: " +
		"a newer srt is needed",
	ReasonYama: "No process may read another's memory here: kernel.yama.ptrace_scope is 3, which lasts until the " +
		"next boot. To have it, boot with kernel.yama.ptrace_scope=2 or lower in /etc/sysctl.d",
	ReasonListener: "Another sandbox or container already listens to the system calls of this process, and the kernel " +
		"takes one listener only. To have it, run srt outside of that one, or have that one listen to nothing " +
		"(a container's seccomp profile without SCMP_ACT_NOTIFY)",
	ReasonRefused: "The surrounding container or sandbox refuses system call filters. To have them, allow seccomp(2) " +
		"and prctl(2) in its profile",
	ReasonProc: "The /proc here counts processes as another pid namespace does, so that srt could not look there whose call it is. " +
		"To have listeners, mount a /proc of this namespace (unshare --mount-proc), or run srt outside of the sandbox around it",
}

// UnavailableError says why no listener can be had. It wraps [ErrUnavailable] and the system call's error.
type UnavailableError struct {
	Reason Reason
	// Err is what the kernel said; nil if it was a setting that told.
	Err error
}

// Error is a sentence on the reason and what to do.
func (e *UnavailableError) Error() string {
	text := reasons[ReasonUnknown]
	if int(e.Reason) < len(reasons) {
		text = reasons[e.Reason]
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives ErrUnavailable and Err.
func (e *UnavailableError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnavailable}
	}
	return []error{ErrUnavailable, e.Err}
}

// kernel is what Available asks. Tests put another one in its place.
type kernel interface {
	action() error                // is SECCOMP_RET_USER_NOTIF known?
	flags() error                 // are the flags of a listener known? nil or an error
	sizes() ([3]uint16, error)    // struct seccomp_notif_sizes
	ptraceScope() (string, error) // kernel.yama.ptrace_scope; ENOENT without Yama
	filtered() bool               // may this process be under a filter?
	procElsewhere() bool          // does /proc count processes as another pid namespace does?
	load() error                  // load a filter with a listener, on a thread that then ends
}

// Available returns nil if a process that this one starts can load a filter with a listener, and this one can serve it;
// else an [*UnavailableError]. Nothing of this process changes. It takes about 20 us, and where this process is under a
// filter itself about 100 us: whether a listener is among those filters, the kernel only tells who asks for another.
//
// The answer holds for as long as this process loads no filter. It may be asked from any goroutine.
func Available() error { return available(thisKernel{}) }

func available(k kernel) error {
	if err := k.action(); err != nil {
		return lacking(err)
	}
	if err := k.flags(); err != nil {
		return lacking(err)
	}
	sizes, err := k.sizes()
	if err != nil {
		return lacking(err)
	}
	if want := [...]uint16{uint16(unsafe.Sizeof(Notification{})), ResponseSize, 64}; sizes != want {
		return &UnavailableError{ReasonLayout, fmt.Errorf("sizes %d, want %d", sizes, want)}
	}
	switch scope, err := k.ptraceScope(); {
	case errors.Is(err, unix.ENOENT): // no Yama
	case err != nil:
		return &UnavailableError{ReasonUnknown, err}
	case scope == "3":
		return &UnavailableError{ReasonYama, nil}
	}
	if k.filtered() {
		if err := k.load(); errors.Is(err, unix.EBUSY) {
			return &UnavailableError{ReasonListener, err}
		} else if err != nil {
			return &UnavailableError{ReasonRefused, err}
		}
	}
	if k.procElsewhere() {
		return &UnavailableError{ReasonProc, nil}
	}
	return nil
}

// lacking parts a kernel that does not know something (EOPNOTSUPP, EINVAL, ENOSYS) from a filter that forbids asking.
func lacking(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return &UnavailableError{ReasonRefused, err}
	}
	return &UnavailableError{ReasonKernel, err}
}

type thisKernel struct{}

func (thisKernel) action() error {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	_, err := control(unix.SECCOMP_GET_ACTION_AVAIL, 0, unsafe.Pointer(&action))
	return err
}

// listenerFlags are those that ns loads such filters with.
const listenerFlags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

// flags asks without a program: unknown flags are EINVAL, and then the missing program is EFAULT (seccomp(2)).
func (thisKernel) flags() error {
	_, err := control(unix.SECCOMP_SET_MODE_FILTER, listenerFlags, nil)
	switch {
	case errors.Is(err, unix.EFAULT):
		return nil
	case err == nil:
		return errors.New("seccomp(2) loaded a filter that does not exist")
	}
	return err
}

func (thisKernel) sizes() (sizes [3]uint16, err error) {
	_, err = control(unix.SECCOMP_GET_NOTIF_SIZES, 0, unsafe.Pointer(&sizes))
	return sizes, err
}

func (thisKernel) ptraceScope() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	return strings.TrimSpace(string(b)), err
}

// procElsewhere counts the numbers that this process has from the namespace of /proc down to its own ("NSpid:" in
// proc_pid_status(5)). A notification tells the number in its own, and that it is in the listener's (seccomp_unotify(2)). Two of them may be
// equal by chance. What cannot be read is not the namespace's own.
func (thisKernel) procElsewhere() bool {
	fd, err := unix.Open("/proc/self/status", unix.O_RDONLY|unix.O_CLOEXEC, 0) // package os would make a poller for it
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	var text []byte // as long as this process's list of groups
	for buf := make([]byte, 4096); ; {
		n, err := unix.Read(fd, buf)
		if err != nil {
			return true
		}
		if n == 0 {
			break
		}
		text = append(text, buf[:n]...)
	}
	_, rest, _ := strings.Cut(string(text), "\nNSpid:")
	line, _, _ := strings.Cut(rest, "\n")
	return len(strings.Fields(line)) != 1
}

// filtered takes a refused answer for a filter's (PR_GET_SECCOMP(2const)).
func (thisKernel) filtered() bool {
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err != nil || mode != unix.SECCOMP_MODE_DISABLED
}

// load asks on a thread of its own, which keeps no_new_privs and the filter and therefore ends with it.
func (thisKernel) load() error {
	answer := make(chan error, 1)
	go onThrownAwayThread(func() { answer <- loadAllowAll() })
	return <-answer
}

// onThrownAwayThread runs f on a thread that ends afterwards: a goroutine that ends while locked to its thread takes that
// along. The first thread of the process cannot end, so f does not run on it.
func onThrownAwayThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	done := make(chan struct{})
	go func() { // cannot run on this thread, which is taken
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
	runtime.UnlockOSThread()
}

func loadAllowAll() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_NO_NEW_PRIVS): %w", err)
	}
	insn := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	prog := unix.SockFprog{Len: 1, Filter: &insn}
	fd, err := control(unix.SECCOMP_SET_MODE_FILTER, listenerFlags, unsafe.Pointer(&prog))
	runtime.KeepAlive(&insn)
	if err != nil {
		return err
	}
	return os.NewSyscallError("close", unix.Close(int(fd)))
}

// control is one seccomp(2) call.
func control(operation, flags uintptr, at unsafe.Pointer) (uintptr, error) {
	r, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, operation, flags, uintptr(at))
	if errno != 0 {
		return 0, os.NewSyscallError("seccomp", errno)
	}
	return r, nil
}
