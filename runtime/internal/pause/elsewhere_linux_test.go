package pause

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// In a pid namespace of its own, with the /proc of the one around, a process's number there is somebody else's.
func TestIdentify_NobodyInTheProcOfAnotherNamespace(t *testing.T) {
	const within = "SRT_TEST_PAUSE_WITHIN"
	if os.Getenv(within) != "" {
		if got, err := Identify(os.Getpid()); !errors.Is(err, ErrElsewhere) {
			t.Fatalf("number %d is %v, %v; want ErrElsewhere", os.Getpid(), got, err)
		}
		return
	}
	if _, err := Identify(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), within+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
