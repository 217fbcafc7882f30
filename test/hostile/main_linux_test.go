package hostile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// insideVariable is set in the process that runs the tests, which has namespaces of its own, to a directory for it.
const insideVariable = "SRT_TEST_HOSTILE_INSIDE"

// worldDir is the absolute path of that directory.
var worldDir string

// TestMain runs the tests in a process with its own network and mounts: the host of srt.
func TestMain(m *testing.M) {
	if worldDir = os.Getenv(insideVariable); worldDir != "" {
		if err := os.Unsetenv(insideVariable); err != nil {
			panic(err)
		}
		stage.Main(m)
	}
	os.Exit(runInside())
}

// runInside runs this program once more, with the same arguments, and gives its exit status.
func runInside() int {
	runtime.LockOSThread() // the death of this thread is what ends the other process
	dir, err := os.MkdirTemp("", "srt-test-hostile-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideVariable+"="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW}
	}
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile: the tests need a network and mounts of their own (unshare(2)), by root or with "+
			"user namespaces:", err)
		return 1
	}
	return 0
}

// plain puts before a command line what takes from it the capabilities that an ordinary user has here alone, to make the
// network of the test.
func plain(args []string) []string {
	if os.Getuid() == 0 {
		return args
	}
	return append([]string{"setpriv", "--ambient-caps=-all", "--inh-caps=-all", "--"}, args...)
}
