package broker

import (
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// TestAsOrdinaryUser runs the tests of the package again as the user named by SRT_TEST_USER (srt-test unless set).
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("got an ordinary user already, want root: the other tests have run as one")
	}
	if testing.Short() {
		t.Skip("repeats the tests of the package; not with -short")
	}
	name := os.Getenv("SRT_TEST_USER")
	if name == "" {
		name = "srt-test"
	}
	account, err := user.Lookup(name)
	if err != nil {
		t.Skipf("want a user %s (build/prepare.sh makes it), got: %v", name, err)
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	folder, err := os.MkdirTemp("", "srt-broker-user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(folder, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, uid, gid); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(folder, "broker.test")
	copyProgram(t, binary)
	cmd := exec.Command(binary, "-test.run", "^Test")
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH"), envFull + "=" + os.Getenv(envFull),
		envSeed + "=" + os.Getenv(envSeed)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// copyProgram copies this test binary to where the user can execute it.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(dst, self); err != nil {
		t.Fatal(err)
	}
	if err := dst.Close(); err != nil {
		t.Fatal(err)
	}
}
