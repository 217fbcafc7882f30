package stage

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/test/mode"
)

// Patience bounds every wait for another process, so that a fault does not hang the run. It says nothing about speed.
const Patience = 90 * time.Second

// markVariable is in the environment of every process that a test starts, so that leftovers can be found.
const markVariable = "SRT_TEST_MARK"

// Stage is one test's own world: a directory of the account that holds everything the test uses. It belongs to the
// goroutine of its test.
type Stage struct {
	T    *testing.T
	Who  Account
	Dir  string   // absolute; the test's own files, which no sandbox may touch, lie directly in here
	Home string   // HOME
	Work string   // ~/p, the project and working directory
	Temp string   // TMPDIR outside and inside
	Env  []string // of every program; the caller appends
	mark string
}

// Each runs a test as every account, each on a stage of its own.
func Each(t *testing.T, f func(*Stage)) {
	t.Helper()
	for _, who := range accounts {
		t.Run(who.Name, func(t *testing.T) { f(newStage(t, who)) })
	}
}

// EachAlong is Each for tests that share nothing with others.
func EachAlong(t *testing.T, f func(*Stage)) {
	t.Helper()
	t.Parallel()
	for _, who := range accounts {
		t.Run(who.Name, func(t *testing.T) {
			t.Parallel()
			f(newStage(t, who))
		})
	}
}

func newStage(t *testing.T, who Account) *Stage {
	t.Helper()
	dir, err := os.MkdirTemp("", "srt-test-")
	if err != nil {
		t.Fatal(err)
	}
	s := &Stage{T: t, Who: who, Dir: dir, Home: dir + "/home", Work: dir + "/home/p", Temp: dir + "/tmp", mark: rand.Text()}
	t.Cleanup(func() {
		s.KillAll()
		if err := removeAll(dir); err != nil {
			t.Error(err)
		}
	})
	s.Must(errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, who.UID, who.GID)))
	s.Mkdir(s.Work)
	s.Mkdir(s.Temp)
	s.Env = append(mode.Env(), "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME="+s.Home, "LANG=C.UTF-8", "TERM=dumb",
		"USER="+who.Name, "TZ=UTC", "TMPDIR="+s.Temp, "CLAUDE_CODE_TMPDIR="+s.Temp, markVariable+"="+s.mark)
	return s
}

// removeAll removes a tree of which a test may have made parts inaccessible.
func removeAll(dir string) error {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Must ends the test on an error.
func (s *Stage) Must(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

// Abs makes a path absolute in the project.
func (s *Stage) Abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.Work, path)
}

// Mkdir makes a directory and its missing parents, mode 0755, all the account's.
func (s *Stage) Mkdir(path string) {
	s.T.Helper()
	path = s.Abs(path)
	if _, err := os.Lstat(filepath.Dir(path)); err != nil {
		s.Mkdir(filepath.Dir(path))
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		s.T.Fatal(err)
	}
	s.Must(errors.Join(os.Chmod(path, 0o755), os.Lchown(path, s.Who.UID, s.Who.GID)))
}

// File writes a file of the account, mode 0644, with the directories to it.
func (s *Stage) File(path, text string) {
	s.T.Helper()
	path = s.Abs(path)
	s.Mkdir(filepath.Dir(path))
	s.Must(errors.Join(os.WriteFile(path, []byte(text), 0o644), os.Lchown(path, s.Who.UID, s.Who.GID)))
}

// Copy copies the regular files of a tree into the project, as files of the account.
func (s *Stage) Copy(from, to string) {
	s.T.Helper()
	s.Must(filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			rel, _ := filepath.Rel(from, path) // both come from the same walk
			s.File(filepath.Join(to, rel), string(text))
		}
		return err
	}))
}

// Clear empties the project and the directory for temporary files.
func (s *Stage) Clear() {
	s.T.Helper()
	for _, dir := range []string{s.Work, s.Temp} {
		s.Must(removeAll(dir))
		s.Mkdir(dir)
	}
}

// Rules is a settings file in short: what is not set is empty.
type Rules struct {
	DenyRead, AllowRead, AllowWrite, DenyWrite []string
	AllowGitConfig                             bool
}

// Settings writes a settings file beside the home, and gives its absolute path.
func (s *Stage) Settings(r Rules) string {
	s.T.Helper()
	full := func(list []string) []string { return append([]string{}, list...) }
	text, err := json.Marshal(mode.Settings(map[string]any{
		"network": map[string]any{"allowedDomains": []string{}, "deniedDomains": []string{}},
		"filesystem": map[string]any{"denyRead": full(r.DenyRead), "allowRead": full(r.AllowRead),
			"allowWrite": full(r.AllowWrite), "denyWrite": full(r.DenyWrite), "allowGitConfig": r.AllowGitConfig},
	}))
	s.Must(err)
	f, err := os.CreateTemp(s.Dir, "settings-*.json")
	s.Must(err)
	defer f.Close()
	_, err = f.Write(text)
	s.Must(errors.Join(err, f.Chmod(0o644)))
	return f.Name()
}

// Need fails where CI expects a tool, and skips the test elsewhere.
func Need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("got no %s, want it (build/prepare.sh installs it)", tool)
		}
		t.Skipf("got no %s, want it; make test installs it", tool)
	}
}
