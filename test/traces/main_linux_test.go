package traces

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// privateVariable tells the second process that it runs in a mount namespace of its own.
const privateVariable = "SRT_TEST_PRIVATE"

// private are the directories that every program writes to. The tests have empty ones of their own.
// The one that the others are made in comes last.
var private = []struct{ path, name string }{{"/var/tmp", "vartmp"}, {"/run", "run"}, {"/dev/shm", "shm"}, {"/tmp", "tmp"}}

func TestMain(m *testing.M) {
	if os.Getenv(privateVariable) != "" {
		stage.Main(m)
	}
	code, err := again()
	if err != nil {
		fmt.Fprintln(os.Stderr, "traces:", err)
		code = 1
	}
	os.Exit(code)
}

// again runs this test binary once more, in a mount namespace of its own, and returns its status.
func again() (int, error) {
	dir, err := os.MkdirTemp("", "srt-test-traces-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	tmp, script := filepath.Join(dir, "tmp"), "set -e\n"
	for _, d := range private {
		from := filepath.Join(dir, d.name)
		if err := errors.Join(os.Mkdir(from, 0o755), os.Chmod(from, os.ModeSticky|0o777)); err != nil {
			return 0, err
		}
		script += fmt.Sprintf("mount --bind '%s' %s\n", from, d.path)
	}
	// srt and this binary may lie in the directory that is covered, which the second process does not see.
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	if err := stage.Install(filepath.Join(tmp, "srt")); err != nil {
		return 0, err
	}
	if text, err := exec.Command("cp", self, filepath.Join(tmp, "traces.test")).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("cp %s: %w: %s", self, err, text)
	}
	line := []string{"unshare", "-m", "sh", "-c", script + `cd /tmp && exec "$@"`, "sh"}
	if os.Getuid() != 0 {
		line = append([]string{"unshare", "-c", "--keep-caps"}, line[1:]...)
		line = append(line, "setpriv", "--inh-caps=-all", "--ambient-caps=-all")
	}
	line = append(append(line, "/tmp/traces.test"), flags()...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), privateVariable+"=1", stage.BinaryVariable+"=/tmp/srt", "TMPDIR=/tmp")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// flags are those of this process without the files that the go command wants written, which the second cannot reach.
func flags() []string {
	var kept []string
	for _, f := range os.Args[1:] {
		if !strings.HasPrefix(f, "-test.testlogfile=") && !strings.HasPrefix(f, "-test.coverprofile=") && !strings.HasPrefix(f, "-test.gocoverdir=") {
			kept = append(kept, f)
		}
	}
	return kept
}
