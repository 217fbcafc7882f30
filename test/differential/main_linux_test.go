package differential

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// Set once by TestMain.
var (
	srtPath, probePath string
	accounts           []stage.Account
)

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
	if accounts, err = stage.Accounts(); err != nil {
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
	if err := stage.Install(srtPath); err != nil {
		return 0, err
	}
	cmd := exec.Command("go", "build", "-o", probePath, "./internal/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%q: %w\n%s", cmd.Args, err, text)
	}
	if err := os.Chmod(probePath, 0o755); err != nil {
		return 0, err
	}
	return m.Run(), nil
}
