package stage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/srt-sandbox/srt/test/mode"
)

const (
	// BinaryVariable is the environment variable that names a finished srt; without it one is built.
	BinaryVariable = "SRT_BINARY"
	// userVariable names the ordinary user that a run as root runs every test as, too.
	userVariable = "SRT_TEST_USER"
	defaultUser  = "srt-test"
)

// Set once by Main.
var (
	srtPath  string // the srt under test, where every user can execute it
	binDir   string // where srt lies, removed at the end
	accounts []Account
)

// Account is somebody who runs programs in a test.
type Account struct {
	Name     string // of the subtest: "root" or "user"
	UID, GID int
}

// Root tells whether a is uid 0.
func (a Account) Root() bool { return a.UID == 0 }

// Main is the body of TestMain: it prepares what the tests share, runs them, and ends the process with their status.
func Main(m *testing.M) {
	code, err := prepareAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stage:", err)
		code = 1
	}
	os.Exit(code)
}

func prepareAndRun(m *testing.M) (int, error) {
	var err error
	if accounts, err = Accounts(); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "srt-test-bin-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return 0, err
	}
	binDir, srtPath = dir, filepath.Join(dir, "srt")
	if err := Install(srtPath); err != nil {
		return 0, err
	}
	if err := confines(dir); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// Install puts the srt under test at path, an absolute one, executable by everybody: a copy of what BinaryVariable
// names, or a fresh build, which has to be asked for from a directory of the module.
func Install(path string) error {
	if given := os.Getenv(BinaryVariable); given != "" {
		data, err := os.ReadFile(given)
		if err != nil {
			return fmt.Errorf("%s: %w", BinaryVariable, err)
		}
		return os.WriteFile(path, data, 0o755)
	}
	cmd := exec.Command("go", "build", "-o", path, "github.com/srt-sandbox/srt/cmd/srt")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w\n%s", cmd.Args, err, text)
	}
	return os.Chmod(path, 0o755)
}

// GoTool gives the path of a go command that every account can run, or "" where there is none. What go has fetched by
// itself lies in the home of the one user for whom it did; then this is a copy, which lasts as long as the tests.
var GoTool = sync.OnceValues(func() (string, error) {
	tool, err := exec.LookPath("go")
	if errors.Is(err, exec.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	out, err := exec.Command(tool, "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("%s env GOROOT: %w", tool, err)
	}
	root := strings.TrimSpace(string(out))
	open, err := openToAll(root)
	if err != nil || open {
		return filepath.Join(root, "bin", "go"), err
	}
	to := filepath.Join(binDir, "go")
	if text, err := exec.Command("cp", "-r", root, to).CombinedOutput(); err != nil {
		return "", fmt.Errorf("copy %s to %s: %w: %s", root, to, err, text)
	}
	return filepath.Join(to, "bin", "go"), exec.Command("chmod", "-R", "a+rX", to).Run()
})

// openToAll tells whether every directory of an absolute path can be searched by everybody.
func openToAll(path string) (bool, error) {
	for ; path != "/"; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil || info.Mode()&0o001 == 0 {
			return false, err
		}
	}
	return true, nil
}

// confines refuses to go on with an srt that confines nothing: the tests do as root what must not be done outside a
// sandbox.
func confines(dir string) error {
	outside, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return err
	}
	settings, err := mode.Canary(dir)
	if err != nil {
		return err
	}
	var words bytes.Buffer
	canary := filepath.Join(dir, "canary")
	cmd := exec.Command(srtPath, "-s", settings, "exec", "--", "sh", "-c", `readlink /proc/self/ns/pid; touch "$0"`, canary)
	cmd.Env = append(mode.Env(), "PATH=/usr/bin:/bin", "HOME="+dir)
	cmd.Stderr = &words
	out, err := cmd.Output()
	if _, statErr := os.Lstat(canary); !mode.Harmless(string(out), outside, err == nil || statErr == nil) {
		return fmt.Errorf("%s confines nothing, so that the tests would harm this machine: %w\n%s%s", srtPath, err, out, &words)
	}
	return nil
}

// Accounts are root and the ordinary user of the tests for root, who makes that user where it is missing, and just the
// current user for anybody else.
func Accounts() ([]Account, error) {
	if uid := os.Getuid(); uid != 0 {
		return []Account{{"user", uid, os.Getgid()}}, nil
	}
	name := os.Getenv(userVariable)
	if name == "" {
		name = defaultUser
	}
	u, err := user.Lookup(name)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		if text, err := exec.Command("useradd", "--create-home", "--shell", "/bin/bash", name).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("the ordinary user %s cannot be made: %w\n%s", name, err, text)
		}
		u, err = user.Lookup(name)
	}
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if uid == 0 {
		return nil, fmt.Errorf("%s=%s is root; an ordinary user is needed", userVariable, name)
	}
	return []Account{{"root", 0, 0}, {"user", uid, gid}}, nil
}
