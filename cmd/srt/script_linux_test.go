package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// testUserVariable names the ordinary user whose run of every transcript a run as root adds (make test creates it).
const testUserVariable = "SRT_TEST_USER"

// TestScript runs the transcripts of testdata/script against the real binary: as the user who runs the test and, for
// root, as an ordinary user too.
func TestScript(t *testing.T) {
	root := scratch(t)
	binary := filepath.Join(root, "srt")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	self := strconv.Itoa(os.Getuid())
	t.Run("uid "+self, func(t *testing.T) { runScripts(t, binary, nil) })
	if os.Getuid() != 0 {
		return
	}
	name := os.Getenv(testUserVariable)
	if name == "" {
		t.Logf("the run as an ordinary user needs one in %s; make test creates it", testUserVariable)
		return
	}
	account, err := user.Lookup(name)
	if err != nil {
		t.Fatalf("%s: %v", testUserVariable, err)
	}
	t.Run("user "+name, func(t *testing.T) { runScripts(t, binary, account) })
}

// scratch makes a directory that every user can enter; t.TempDir is open to its owner alone.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "srt-script-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runScripts runs every transcript with srt on the PATH; as account, if it is not nil, else as whoever runs the test.
func runScripts(t *testing.T, binary string, account *user.User) {
	dir := scratch(t)
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := installSrt(filepath.Join(bin, "srt"), binary, account); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		WorkdirRoot:         dir,
		RequireExplicitExec: true,
		Condition: func(name string) (bool, error) {
			if name == "direct" { // srt runs as the user who made the script's pipes
				return account == nil, nil
			}
			return false, errors.New("unknown condition " + name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"expand":    expand,
			"gone":      gone,
			"interrupt": interrupt,
			"reset":     reset,
			"serve":     serve,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+":/usr/local/bin:/usr/bin:/bin") // every user can search these
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			if err := os.MkdirAll(env.Getenv("HOME"), 0o755); err != nil {
				return err
			}
			if account == nil {
				return nil
			}
			return giveTo(env.WorkDir, account)
		},
	})
}

// installSrt puts srt at path: the binary itself, or a line that becomes account first and then srt, in one process.
func installSrt(path, binary string, account *user.User) error {
	if account == nil {
		return os.Symlink(binary, path)
	}
	text := "#!/bin/sh\nexec setpriv --reuid=" + account.Uid + " --regid=" + account.Gid + " --init-groups -- " + binary + ` "$@"` + "\n"
	return os.WriteFile(path, []byte(text), 0o755)
}

func giveTo(dir string, account *user.User) error {
	uid, err := strconv.Atoi(account.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(account.Gid)
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}
