package ns

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// CRED-35: this process dumps no core once it is told to, and its commands have the limit that it had. The limit stays for as long
// as a process lives, so another one is asked.
func TestLimitCores_CRED35(t *testing.T) {
	if want := os.Getenv("LIMIT_CORES_WANT"); want != "" {
		limitCores(t, want)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for soft, want := range map[string]string{"unlimited": "unlimited", "0": "0", "7": "7"} {
		cmd := exec.Command("/bin/sh", "-c", "ulimit -Sc "+soft+" && exec \"$0\" -test.run=TestLimitCores_CRED35 -test.v", exe)
		cmd.Env = append(os.Environ(), "LIMIT_CORES_WANT="+want)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
			t.Errorf("ulimit -c %s: %v\n%s", soft, err, out)
		}
	}
}

func limitCores(t *testing.T, want string) {
	t.Helper()
	command := func() string {
		out, _, err := run(t, minimal(newProgram(t), "/bin/sh", "-c", "ulimit -Sc"))
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(out)
	}
	if got := command(); got != want {
		t.Errorf("before: a command has %s, want %s", got, want)
	}
	for range 2 {
		if err := LimitCores(); err != nil {
			t.Fatal(err)
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_CORE, &now); err != nil || now.Cur > noCore {
			t.Errorf("the soft limit is %d, %v; want %d", now.Cur, err, noCore)
		}
		if got := command(); got != want {
			t.Errorf("after: a command has %s, want %s", got, want)
		}
	}
}
