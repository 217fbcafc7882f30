package fsview

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// confinedPlan makes a plan of words as input does, and holds it without mounts.
func confinedPlan(t *testing.T, tree *fakeTree, words string) (*Confined, error) {
	t.Helper()
	plan, _ := built(t, tree, words)
	return Confine(plan, ConfineInput{Tree: tree, UID: tree.uid, ExtraWrite: input(t, words).ExtraWrite})
}

// TestConfineRefusals walks what cannot be held without mounts, and what can.
func TestConfineRefusals(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		want              string // "setting entry path" of each, "" if it is held
		advice            string
	}{
		{"FS-26 writing alone", "", "aW=. dW=k", "", ""},
		{"FS-22 outside of write roots", "f /h/s/x", "aW=. dR=~/s", "", ""},
		{"FS-57 a credential outside of write roots", "f /h/s/x", "aW=. cred=~/s/x", "", ""},
		{"FS-22 a directory in a write root", "d /h/p/s", "aW=. dR=s", `filesystem.denyRead.0 "s" /h/p/s`, "filesystem.allowWrite"},
		{"FS-31 a file in a write root", "", "aW=. dR=k", `filesystem.denyRead.0 "k" /h/p/k`, "filesystem.denyWrite"},
		{"FS-57 a credential in a write root", "", "aW=. cred=k", `credentials.files.0.path "k" /h/p/k`, "filesystem.allowWrite"},
		{"FS-22 in a write root in a hidden directory", "f /h/s/w/x", "dR=~/s aW=~/s/w dR=~/s/w/x", `filesystem.denyRead.1 "~/s/w/x" /h/s/w/x`, "filesystem.allowWrite"},
		{"FS-22 in a read-only part of a write root", "f /h/p/ro/s", "aW=. dW=ro dR=ro/s", `filesystem.denyRead.0 "ro/s" /h/p/ro/s`, "filesystem.allowWrite"},
		{"FS-22 a write root in a hidden directory", "f /h/s/w/x", "dR=~/s aW=~/s/w", "", ""},
		{"FS-58 a mask", "f /h/s/x", "mask=/h/s/x", `credentials.files.0.path "/h/s/x" /h/s/x`, `"mode": "deny"`},
		{"two at once", "f /h/s/x", "aW=. dR=k mask=/h/s/x", `filesystem.denyRead.0 "k" /h/p/k;credentials.files.0.path "/h/s/x" /h/s/x`, ""},
		{"CLI-30 a file of the caller's in a write root", "p /h/p/ctl", "aW=. privateFile=/h/p/ctl", "", ""},
		{"FS-51 srt's own directory in a write root", "d /h/p/state", "aW=. private=/h/p/state", "", ""},
		{"FS-31 a pipe that must not be written to", "p /h/p/ff", "aW=. dW=ff", "", ""},
		{"FS-10 what is not there yet", "", "aW=. dR=none", "", ""},
		{"FS-55 a pattern of what is not there yet", "", "aW=. dR=**/*.pem", "", ""},
		{"FS-47 in /proc", "f /proc/version", "dR=/proc/version", `filesystem.denyRead.0 "/proc/version" /proc/version`, "/proc as a whole"},
		{"FS-47 all of /proc", "f /proc/version", "dR=/proc", "", ""},
		{"FS-47 in /dev", "f /dev/null;f /dev/sda", "dR=/dev/sda", "", ""},
		{"FS-47 in /sys", "f /sys/class/net/x;f /sys/class/block/x", "dR=/sys/class/net", "", ""},
		{"FS-47 in shared memory", "f /dev/shm/x", "aW=/dev/shm dR=/dev/shm/x", `filesystem.denyRead.0 "/dev/shm/x" /dev/shm/x`, "take /dev/shm out"},
		{"FS-11 a directory that cannot be listed", "f /o/s/x;d /o mode=711 uid=7", "dR=/o/s", `filesystem.denyRead.0 "/o/s" /o/s`, `"/o", which cannot be listed`},
		{"FS-7 the directory around it shows in it", "d /x;d /h/o;m /x/root /", "dR=/x/root", `filesystem.denyRead.0 "/x/root" /x/root`, "deny both"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := confinedPlan(t, newFakeTree(t, "f /h/p/k;"+tt.tree), tt.rules)
			var got []string
			var ce *ConfineError
			if errors.As(err, &ce) {
				for _, r := range ce.Refusals {
					got = append(got, fmt.Sprintf("%s %q %s", r.Setting, r.Entry, r.Path))
					if !slices.Contains(RefusalKinds(), r.Kind) {
						t.Errorf("kind %q", r.Kind)
					}
				}
				if c != nil || !strings.Contains(err.Error(), tt.advice) {
					t.Errorf("%v, want %q in it", err, tt.advice)
				}
			} else if err != nil || c == nil {
				t.Fatal(err)
			}
			if strings.Join(got, ";") != tt.want {
				t.Errorf("refused %q, want %q", got, tt.want)
			}
		})
	}
}

// TestConfinedOwn: what is srt's own in a place that can be written to is hidden by judging openings, and changes of it are refused
// (FS-51, CLI-30).
func TestConfinedOwn(t *testing.T) {
	c, err := confinedPlan(t, newFakeTree(t, "p /h/p/ctl;f /h/p/state/j;f /h/p/settings;f /h/p/k"), "aW=. privateFile=/h/p/ctl private=/h/p/state own=/h/p/settings")
	if err != nil {
		t.Fatal(err)
	}
	j := c.Judge()
	if !j.Reads() || !j.Names() {
		t.Fatal("openings are not judged")
	}
	for p, want := range map[string]bool{"/h/p/ctl": true, "/h/p/state/j": true, "/h/p/state": true, "/h/p/settings": false, "/h/p/k": false} {
		if why, denied := j.Open(p); denied != want || denied != (why != "") {
			t.Errorf("open %s: %q, denied %v", p, why, denied)
		}
		if _, denied := j.Leave(p); denied != want {
			t.Errorf("leave %s: denied %v", p, denied)
		}
	}
	for _, p := range []string{"/h/p/ctl", "/h/p/state/j", "/h/p/settings"} {
		if _, errno := j.Change(p, AccessWrite); errno == 0 {
			t.Errorf("%s can be changed", p)
		}
		if _, errno := j.Change(p, AccessRemove); errno == 0 {
			t.Errorf("%s can be removed", p)
		}
	}
}

// TestConfinedChange covers what is not drawn in TestConfinedScenes: the kernel's own trees, which are the host's here, and names
// that must not come to be.
func TestConfinedChange(t *testing.T) {
	const tree = "f /h/p/k;f /dev/null;f /dev/shm/x;f /proc/7/comm;f /proc/sys/kernel/x;f /sys/class/x;f /h/s/t/x;l /h/s/l /h/s/t;d /h/p/.git/hooks"
	tests := []struct {
		name, rules, asked string
		want               syscall.Errno
		rule               string
	}{
		{"FS-47 attributes of a device", "", "write /dev/null", syscall.EACCES, "private /dev"},
		{"FS-47 with all granted", "aW=/", "write /dev/null", syscall.EACCES, "private /dev"},
		{"FS-56 without rules", "disabled", "write /dev/null", syscall.EACCES, "private /dev"},
		{"FS-47 a name in /dev", "aW=/", "create /dev/x", syscall.EROFS, "private /dev"},
		{"FS-47 shared memory", "", "create /dev/shm/y", syscall.EROFS, "private /dev"},
		{"FS-47 shared memory that is granted", "aW=/dev/shm", "create /dev/shm/y", 0, ""},
		{"FS-47 the same to remove", "aW=/dev/shm", "remove /dev/shm/x", 0, ""},
		{"FS-47 itself stays", "aW=/dev/shm", "remove /dev/shm", syscall.EROFS, "private /dev"},
		{"FS-28 as the directory for temporary files", "extra=/dev/shm", "create /dev/shm/y", 0, ""},
		{"FS-56 without rules there too", "disabled", "write /dev/shm/x", 0, ""},
		{"FS-47 a process", "aW=/", "write /proc/7/comm", syscall.EACCES, "private /proc"},
		{"FS-47 kernel state", "aW=/", "write /proc/sys/kernel/x", syscall.EROFS, "kernel state"},
		{"FS-47 sysfs", "aW=/", "write /sys/class/x", syscall.EROFS, "kernel state"},
		{"FS-47 a name in sysfs", "disabled", "remove /sys/class/x", syscall.EROFS, "kernel state"},
		{"FS-30 a name that must not come to be", "aW=. dW=none", "create /h/p/none", syscall.EROFS, "filesystem.denyWrite.0"},
		{"FS-35 a protected one", "aW=.", "create /h/p/.vscode", syscall.EROFS, "protected name .vscode"},
		{"FS-55 a pattern", "aW=. dW=*.pem", "create /h/p/x.pem", syscall.EROFS, "filesystem.denyWrite.0"},
		{"FS-10 a name that must not be read", "aW=. dR=none", "create /h/p/none", syscall.EROFS, "filesystem.denyRead.0"},
		{"FS-35 hooks", "aW=.", "write /h/p/.git/hooks", syscall.EROFS, "protected name .git/hooks"},
		{"FS-41 what holds them", "aW=.", "remove /h/p/.git", syscall.EBUSY, "protected name .git/commondir"},
		{"FS-51 the settings file", "aW=. own=/h/p/k", "write /h/p/k", syscall.EROFS, "srt's own file"},
		{"FS-51 the settings file to replace", "aW=. own=/h/p/k", "remove /h/p/k", syscall.EBUSY, "srt's own file"},
		{"FS-51 a settings file that is not there", "aW=. own=/h/p/none", "create /h/p/none", syscall.EROFS, "srt's own file"},
		{"FS-26 a file alone", "aW=k", "write /h/p/k", 0, ""},
		{"FS-26 a file alone to replace", "aW=k", "remove /h/p/k", syscall.EROFS, "filesystem.allowWrite"},
		{"FS-32 what is hidden", "dR=~/s", "create /h/s/new", syscall.EACCES, "filesystem.denyRead.0"},
		{"FS-9 what a re-allowed link shows", "dR=~/s aR=~/s/l", "write /h/s/t/x", syscall.EROFS, "filesystem.allowRead.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := confinedPlan(t, newFakeTree(t, tree), tt.rules)
			if err != nil {
				t.Fatal(err)
			}
			verb, p, _ := strings.Cut(tt.asked, " ")
			for a := AccessRead; a <= AccessRemove; a++ {
				if a.String() != verb {
					continue
				}
				if why, errno := c.Judge().Change(p, a); errno != tt.want || why != tt.rule {
					t.Errorf("%s: %v by %q, want %v by %q", tt.asked, errno, why, tt.want, tt.rule)
				}
			}
		})
	}
}

// TestConfinedReading covers reading where scenes do not lead.
func TestConfinedReading(t *testing.T) {
	const tree = "f /h/p/k;f /h/o/x;f /dev/null;f /dev/sda;f /dev/shm/x;f /sys/firmware/x;f /sys/class/x;f /proc/7/comm;f /srv/dev/sda;f /usr/bin/x;l /bin /usr/bin"
	read := func(words, p string, root bool) (ReadRight, error) {
		ft := newFakeTree(t, tree)
		if root {
			words += " root"
		}
		c, err := confinedPlan(t, ft, words)
		if err != nil {
			return 0, err
		}
		return (&view{tree: ft}).granted(c.ReadRules(), p), nil
	}
	for _, tt := range []struct {
		rules, path string
		root        bool
		want        ReadRight
	}{
		{"", "/h/p/k", false, readAll}, {"", "/usr/bin/x", false, readAll}, {"", "/proc/7/comm", false, readAll}, {"", "/dev/sda", false, ReadList},
		{"", "/", false, ReadList}, {"", "/sys/firmware/x", false, readAll}, {"", "/sys/firmware/x", true, ReadList}, {"", "/sys/class/x", true, readAll},
		{"dR=~/o", "/h/o/x", false, 0}, {"dR=~/o", "/h", false, 0}, {"dR=~/o", "/h/p/k", false, readAll}, {"dR=~/o", "/dev/sda", false, ReadList},
		{"private=/h/o", "/h/o/x", false, ReadList}, {"private=/h/o", "/", false, ReadList}, {"proc=/h/o", "/h/o/x", false, ReadList},
		{"dR=/proc", "/proc/7/comm", false, 0}, {"dR=/ aR=.", "/h/p/k", false, readAll}, {"dR=/ aR=.", "/usr/bin/x", false, 0},
		{"disabled", "/h/o/x", false, readAll}, {"disabled", "/dev/sda", true, ReadList}, {"aW=/dev/shm", "/dev/shm/x", false, readAll},
	} {
		if got, err := read(tt.rules, tt.path, tt.root); got != tt.want || err != nil {
			t.Errorf("%q %s: %s is granted, want %s (%v)", tt.rules, tt.path, got, tt.want, err)
		}
	}
}

// TestConfinedManyRules: a directory with too many names beside what is hidden is an error that names the entry.
func TestConfinedManyRules(t *testing.T) {
	tree := newFakeTree(t, "d /h/p;d /o/s")
	for i := range maxReadRules {
		tree.add(fmt.Sprint("/o/f", i), 'f')
	}
	_, err := confinedPlan(t, tree, "dR=/o/s")
	var ce *ConfineError
	if !errors.As(err, &ce) || len(ce.Refusals) != 1 || ce.Refusals[0].Setting != "filesystem.denyRead.0" || !strings.Contains(err.Error(), "more Landlock rules") {
		t.Errorf("%v", err)
	}
}

// TestConfineWithinStall: a file system beside what is hidden that does not answer ends the start with its name.
func TestConfineWithinStall(t *testing.T) {
	tree := &stallingTree{fakeTree: newFakeTree(t, "f /h/p/k;f /o/s/x;d /o/dead"), at: "/o/dead", release: make(chan struct{}), asked: make(chan string, 1)}
	defer close(tree.release)
	plan, _ := built(t, tree.fakeTree, "dR=/o/s")
	c, err := ConfineWithin(plan, ConfineInput{Tree: tree, UID: 1000}, 200*time.Millisecond)
	var stall *StallError
	if !errors.As(err, &stall) || c != nil || stall.Path != "/o/dead" {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := ConfineWithin(plan, ConfineInput{Tree: tree.fakeTree, UID: 1000}, 0); err != nil {
		t.Error(err)
	}
}
