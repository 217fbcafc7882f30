package differential

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
)

// Set once by TestMain.
var (
	srtPath, probePath string
	accounts           []account
)

// account is who runs srt in a case.
type account struct {
	name     string
	uid, gid int
}

func TestMain(m *testing.M) {
	code, err := prepareAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		code = 1
	}
	os.Exit(code)
}

func prepareAndRun(m *testing.M) (int, error) {
	var err error
	if accounts, err = findAccounts(); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "srt-diff-bin-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return 0, err
	}
	srtPath, probePath = filepath.Join(dir, "srt"), filepath.Join(dir, "probe")
	if given := os.Getenv("SRT_BINARY"); given != "" {
		data, err := os.ReadFile(given)
		if err != nil {
			return 0, err
		}
		if err := os.WriteFile(srtPath, data, 0o755); err != nil {
			return 0, err
		}
	} else if err := build(srtPath, "github.com/srt-sandbox/srt/cmd/srt"); err != nil {
		return 0, err
	}
	if err := build(probePath, "./internal/probe"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

func build(out, pkg string) error {
	cmd := exec.Command("go", "build", "-o", out, pkg)
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
	name := os.Getenv("SRT_TEST_USER")
	if name == "" {
		name = "srt-test"
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
		return nil, fmt.Errorf("SRT_TEST_USER=%s is root; an ordinary user is needed", name)
	}
	return []account{{"root", 0, 0}, {"user", uid, gid}}, nil
}
