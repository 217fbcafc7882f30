package test

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
	"testing"

	"github.com/srt-sandbox/srt/test/mode"
)

const (
	// binaryVariable names a finished srt; without it one is built.
	binaryVariable = "SRT_BINARY"
	// userVariable names the ordinary user that a run as root runs every test as, too.
	userVariable = "SRT_TEST_USER"
	defaultUser  = "srt-test"
	// helpersVariable names a directory with the finished helpers, probe and listener, for systems that have no go command.
	helpersVariable = "SRT_TEST_HELPERS"
)

// Set once by TestMain.
var (
	srtPath   string // the srt under test, where every user can execute it
	probePath string // internal/probe, likewise
	// listenerPath is internal/listener, likewise.
	listenerPath string
	goTool       string // the go command of this toolchain; empty where helpersVariable stands for it
	accounts     []account
)

// account is who runs srt in a test.
type account struct {
	name     string // of the subtest: "root" or "user"
	uid, gid int
}

func (a account) root() bool { return a.uid == 0 }

func TestMain(m *testing.M) {
	code, err := prepareAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test:", err)
		code = 1
	}
	os.Exit(code)
}

func prepareAndRun(m *testing.M) (int, error) {
	var err error
	if accounts, err = findAccounts(); err != nil {
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
	if goTool, err = findGo(dir); err != nil {
		return 0, err
	}
	if err := installBinaries(dir); err != nil {
		return 0, err
	}
	if err := confines(dir); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// findGo gives a go command that every account can run. What go has fetched by itself lies in the home of the one user
// for whom it did; then this is a copy beneath dir.
func findGo(dir string) (string, error) {
	if os.Getenv(helpersVariable) != "" {
		return "", nil
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		return "", err
	}
	root, err := exec.Command(tool, "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("%s env GOROOT: %w", tool, err)
	}
	from := strings.TrimSpace(string(root))
	for path := from; path != "/"; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		if info.Mode()&0o001 != 0 {
			continue
		}
		to := filepath.Join(dir, "go")
		if out, err := exec.Command("cp", "-r", from, to).CombinedOutput(); err != nil {
			return "", fmt.Errorf("copy %s to %s: %w: %s", from, to, err, out)
		}
		return filepath.Join(to, "bin", "go"), exec.Command("chmod", "-R", "a+rX", to).Run()
	}
	return filepath.Join(from, "bin", "go"), nil
}

// confines refuses to go on with an srt that confines nothing: the tests do what must not be done outside a sandbox, as
// root, on the machine they run on.
func confines(dir string) error {
	outside, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return err
	}
	inside, err := exec.Command(srtPath, "-s", os.DevNull+"/none", "exec", "--", "true").CombinedOutput()
	if err == nil {
		return fmt.Errorf("%s runs commands without its settings: %s", srtPath, inside)
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

// installBinaries puts srt and the probe into dir.
func installBinaries(dir string) error {
	srtPath, probePath, listenerPath = filepath.Join(dir, "srt"), filepath.Join(dir, "probe"), filepath.Join(dir, "listener")
	if given := os.Getenv(binaryVariable); given != "" {
		if err := install(given, srtPath); err != nil {
			return fmt.Errorf("%s: %w", binaryVariable, err)
		}
	} else if err := build(srtPath, "github.com/srt-sandbox/srt/cmd/srt"); err != nil {
		return err
	}
	for _, helper := range []string{listenerPath, probePath} {
		name := filepath.Base(helper)
		if given := os.Getenv(helpersVariable); given != "" {
			if err := install(filepath.Join(given, name), helper); err != nil {
				return fmt.Errorf("%s: %w", helpersVariable, err)
			}
		} else if err := build(helper, "./internal/"+name); err != nil {
			return err
		}
	}
	return nil
}

// install copies a finished program to where every account can execute it.
func install(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// build makes a static program that needs nothing of its surroundings.
func build(out, pkg string) error {
	cmd := exec.Command(goTool, "build", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, text)
	}
	return os.Chmod(out, 0o755)
}

// findAccounts are root and the ordinary user for root, and just the current user for anybody else.
func findAccounts() ([]account, error) {
	if uid := os.Getuid(); uid != 0 {
		return []account{{"user", uid, os.Getgid()}}, nil
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
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	if uid == 0 {
		return nil, fmt.Errorf("%s=%s is root; an ordinary user is needed", userVariable, name)
	}
	return []account{{"root", 0, 0}, {"user", uid, gid}}, nil
}
