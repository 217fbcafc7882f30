package escape

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// patience bounds every wait for something of another process. It is no expectation about speed.
const patience = 60 * time.Second

// testUserVariable names the ordinary user that a run as root adds; defaultTestUser is who it is unless set.
const (
	testUserVariable = "SRT_TEST_USER"
	defaultTestUser  = "srt-test"
)

// programs is the directory of srt and the attackers, which every user can execute.
var programs string

// accounts are the users that every attack is made as.
var accounts []account

// account is a user, by number. other tells that it is not the one who runs the test.
type account struct {
	name     string
	uid, gid int
	other    bool
}

func TestMain(m *testing.M) {
	code, err := prepare(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func prepare(m *testing.M) (int, error) {
	var err error
	if programs, err = os.MkdirTemp("", "srt-escape-bin-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(programs)
	if err := os.Chmod(programs, 0o755); err != nil {
		return 0, err
	}
	if err := stage.Install(filepath.Join(programs, "srt")); err != nil {
		return 0, err
	}
	sources, err := filepath.Glob("testdata/attack/*.c")
	if err != nil {
		return 0, err
	}
	for _, src := range sources {
		name := filepath.Base(src[:len(src)-len(".c")])
		if out, err := exec.Command("gcc", "-static", "-pthread", "-O1", "-Wall", "-o", filepath.Join(programs, name), src).CombinedOutput(); err != nil {
			return 0, fmt.Errorf("gcc %s: %w\n%s", src, err, out)
		}
	}
	if accounts, err = chooseAccounts(); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// chooseAccounts is the user who runs the test and, for root, an ordinary one as well.
func chooseAccounts() ([]account, error) {
	list := []account{{name: "uid " + strconv.Itoa(os.Getuid()), uid: os.Getuid(), gid: os.Getgid()}}
	if os.Getuid() != 0 {
		return list, nil
	}
	name := os.Getenv(testUserVariable)
	if name == "" {
		name = defaultTestUser
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("the suite attacks as an ordinary user too; name one in %s (make test-prepare makes %s): %w", testUserVariable, defaultTestUser, err)
	}
	a := account{name: "user " + name, other: true}
	if a.uid, err = strconv.Atoi(u.Uid); err != nil {
		return nil, err
	}
	if a.gid, err = strconv.Atoi(u.Gid); err != nil {
		return nil, err
	}
	return append(list, a), nil
}

// each runs an attack as every account, in a world of its own.
func each(t *testing.T, attack func(t *testing.T, w *world)) {
	for _, a := range accounts {
		t.Run(a.name, func(t *testing.T) { attack(t, newWorld(t, a)) })
	}
}
