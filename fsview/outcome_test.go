package fsview

import (
	"errors"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

func TestBuildErrors(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		reason            error
		entry             string
	}{
		{"FS-47 own process", "l /proc/self 12;f /proc/12/environ", "dR=/proc/self/environ", ErrPerProcess, "filesystem.denyRead.0"},
		{"FS-47 own descriptors", "l /dev/stdin /proc/self/fd/0", "cred=/dev/stdin", ErrPerProcess, "credentials.files.0.path"},
		{"attack 4 /dev is a link", "l /dev h/p", "dR=/dev/x", ErrUninspected, "filesystem.denyRead.0"},
		{"FS-11 FS-47 not inspectable", "d /proc/x eio", "dR=/proc/x", ErrUninspected, "filesystem.denyRead.0"},
		{"FS-11 not inspectable in the root", "f /bad eio", "dR=/bad", ErrUninspected, "filesystem.denyRead.0"},
		{"FS-11 not inspectable in the writable root", "f /bad eio", "aW=/ dW=/bad root", ErrUninspected, "filesystem.denyWrite.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := newFakeTree(t, "f /h/p/k;"+tt.tree)
			in := input(t, tt.rules)
			tree.uid = in.UID
			plan, err := Build(tree, in)
			var ee *EntryError
			if !errors.As(err, &ee) || !errors.Is(err, tt.reason) || plan != nil {
				t.Fatalf("Build = %v, %v, want %v", plan, err, tt.reason)
			}
			if !strings.HasPrefix(ee.Entry, tt.entry+" (") || ee.Advice == "" || !strings.HasPrefix(ee.Path, "/") {
				t.Errorf("entry %q path %q advice %q", ee.Entry, ee.Path, ee.Advice)
			}
		})
	}
}

func TestBuildAbsentIsEnforcedOtherwise(t *testing.T) {
	long := strings.Repeat("n", maxName+1)
	for name, rules := range map[string]string{
		"FS-10 hidden directory":     "dR=sec dR=sec/none",
		"FS-10 hidden whole tree":    "dR=/ dR=/h/none",
		"FS-57 hidden directory":     "cred=sec cred=sec/none",
		"FS-30 hidden directory":     "aW=. dR=sec dW=sec/none",
		"FS-11 impossible name":      "aW=. dW=" + long + " dR=" + long,
		"FS-30 protected name":       "aW=. dW=.vscode/none",
		"FS-47 nothing to hide":      "dR=/proc/none dR=/dev/none aW=/ dW=/dev/none",
		"FS-26 no root":              "dW=none",
		"FS-11 write deny, no roots": "dW=/etc/bad",
	} {
		t.Run(name, func(t *testing.T) {
			built(t, newFakeTree(t, "d /h/p/sec;d /h/p/.vscode;f /etc/bad eio"), rules)
		})
	}
}

func TestBuildWarnings(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		want              []string // parts of the one line each
	}{
		{"case 20 absent write grant", "", "aW=. aW=~/.npm", []string{`filesystem.allowWrite.1 ("~/.npm") does not exist`}},
		{"FS-8 case 28 link", "l /h/p/sl other;d /h/p/other", "aW=sl", []string{`("sl") leads through a link to "/h/p/other"`}},
		{"FS-8 link on the way", "l /h/p/l /h/o;d /h/o/x", "aW=l/x", []string{`("l/x") leads through a link to "/h/o/x"`}},
		{"FS-8 dangling link", "l /h/p/l /h/o", "aW=l", []string{`leads through a link to "/h/o"`}},
		{"FS-55 patterns", "d /h/p/s", "dR=s aW=a* aR=b?", []string{`filesystem.allowRead.0 ("b?") matches nothing`,
			`filesystem.allowWrite.0 ("a*") matches nothing`}},
		{"FS-55 a read allow where no read is denied", "", "aR=b?", nil},
		{"FS-16 case 16 a pattern that names a link", "l /h/p/l*k x;d /h/p/x", "aW=l*k", []string{`("l*k") matches nothing`}},
		{"FS-10 absent read allow", "", "aR=none", nil},
		{"FS-10 absent read allow in a hidden directory", "d /h/p/s", "dR=s aR=s/none",
			[]string{`("s/none") does not exist, so nothing is re-allowed in what filesystem.denyRead.0 ("s") hides`}},
		{"FS-57 read allow in a credential", "d /h/p/s/x", "cred=s aR=s/x",
			[]string{`("s/x") has no effect: credentials.files.0.path ("s") hides it`}},
		{"FS-22 write grant of a hidden file", "f /h/p/s", "dR=s aW=s", []string{`("s") has no effect: filesystem.denyRead.0 ("s")`}},
		{"FS-22 link to the outside", "l /h/p/s/l /h/o;f /h/o", "dR=s aR=s/l", []string{`("s/l") is a link to "/h/o"`}},
		{"FS-35 write grant of a protected name", "d /h/p/.idea/x", "aW=.idea/x", []string{`(".idea/x") grants nothing: protected name .idea`}},
		{"FS-11 read allow that cannot be inspected", "f /h/p/b eio", "aR=b", []string{`("b") cannot be inspected`}},
		{"FS-28 defaults are silent", "l /tmp/claude /h/p", "extra=/tmp/claude extra=/tmp/none extra=/h/.npm/_logs", nil},
		{"FS-26 a read-only grant is only noted", "", "aW=. dW=.", nil},
		{"attack 23 a name with a line feed", "", "aW=a\x0b\x1bb", []string{`("a\v\x1bb") does not exist`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Contains(tt.rules, "\x0b") {
				in := input(t, "")
				in.Rules.AllowWrite = []policy.PathRule{{Key: "k", Entry: "a\v\x1bb", Path: "/h/p/a\v\x1bb"}}
				plan, err := Build(newFakeTree(t, "d /h/p"), in)
				if err != nil || len(plan.Warnings) != 1 || !strings.Contains(plan.Warnings[0], tt.want[0]) {
					t.Fatalf("warnings %q, %v", plan.Warnings, err)
				}
				return
			}
			plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
			if len(plan.Warnings) != len(tt.want) {
				t.Fatalf("warnings %q, want %d", plan.Warnings, len(tt.want))
			}
			for i, part := range tt.want {
				if !strings.Contains(plan.Warnings[i], part) {
					t.Errorf("warning %q does not say %q", plan.Warnings[i], part)
				}
			}
		})
	}
}

func TestBuildNotes(t *testing.T) {
	tests := []struct{ name, tree, rules, want string }{
		{"FS-26 deny above a grant names both", "", "aW=. dW=~", `filesystem.allowWrite.0 (".") is read-only: filesystem.denyWrite.0 ("~")`},
		{"FS-45 hard link of a hidden file", "f /h/p/k links=2", "dR=k", `"/h/p/k" is protected`},
		{"FS-45 hard link of a protected name", "f /h/p/.bashrc links=3", "aW=.", `has 3 hard links`},
		{"FS-47 write grant", "", "aW=/dev/shm", "filesystem.allowWrite.0"},
		{"FS-47 read allow", "", "aR=/proc/1", "filesystem.allowRead.0"},
		{"attack 25 a FIFO is hidden", "p /h/p/ff", "dW=ff aW=.", `"/h/p/ff", which is hidden instead`},
		{"FS-11 stand-in", "f /h/p/b eio", "dR=b aR=.", `"/h/p" is hidden in its place`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
			if !strings.Contains(strings.Join(plan.Notes, "\n"), tt.want) {
				t.Errorf("notes %q do not say %q", plan.Notes, tt.want)
			}
		})
	}
}

func TestBuildDir_FS49(t *testing.T) {
	tests := []struct {
		name, tree, rules, want string
		warns                   bool
	}{
		{"plain", "", "", "/h/p", false},
		{"link", "l /l /h/p", "cwd=/l", "/h/p", false},
		{"case 01 re-allowed", "", "dR=.. aR=.", "/h/p", false},
		{"hidden, home visible", "", "dR=.", "/h", true},
		{"hidden with the home", "", "dR=..", "/", true},
		{"hidden, no home", "", "dR=. home=", "/", true},
		{"only beneath it is re-allowed", "d /h/p/sub", "dR=. aR=sub", "/h", true},
		{"in /proc", "d /proc/sys", "cwd=/proc/sys", "/proc/sys", false},
		{"disabled", "", "disabled dR=.", "/h/p", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
			if plan.Dir != tt.want || (len(plan.Warnings) > 0) != tt.warns {
				t.Errorf("starts in %q with warnings %q, want %q", plan.Dir, plan.Warnings, tt.want)
			}
		})
	}
}

// TestBuildDirOfAnotherName_FS49: who denies a second mount of everything is told what that hides.
func TestBuildDirOfAnotherName_FS49(t *testing.T) {
	tree := newFakeTree(t, "d /run/host;d /h/p")
	tree.attach(2, "/", "/run/host")
	tree.attach(2, "/a", "/h")
	in := input(t, "dR=/run/host cwd=/h")
	in.Mounts = tree.mounts
	plan, err := Build(tree, in)
	if err != nil || plan.Dir != "/" || len(plan.Warnings) != 1 ||
		!strings.Contains(plan.Warnings[0], `by filesystem.denyRead.0 ("/run/host"): FS-7, as at "/run/host"`) {
		t.Errorf("%+v, %v", plan, err)
	}
}

func TestBuildWritable(t *testing.T) {
	tests := []struct {
		name, tree, rules, roots, writable string
		root                               bool
	}{
		{"none", "", "", "", "", false},
		{"roots", "f /h/p/f;d /h/o", "aW=. aW=/h/o aW=f", "/h/o /h/p", "/h/o /h/p", false},
		{"file", "f /h/p/f", "aW=f", "/h/p/f", "/h/p/f-", false},
		{"revealed", "d /h/p/s/w", "aW=. dR=s aW=s/w", "/h/p", "/h/p /h/p/s/w", false},
		{"denied", "", "aW=. dW=.", "", "", false},
		{"everything", "f /h/p/k", "aW=/ aW=. dW=k", "/", "/", true},
		{"FS-56", "", "disabled", "/", "/", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
			var writable []string
			for _, w := range plan.Writable {
				if !w.Dir {
					w.Path += "-"
				}
				writable = append(writable, w.Path)
			}
			sort.Strings(writable)
			if got := strings.Join(plan.WriteRoots, " "); got != tt.roots {
				t.Errorf("write roots %q, want %q", got, tt.roots)
			}
			if got := strings.Join(writable, " "); got != tt.writable || plan.RootWritable != tt.root {
				t.Errorf("writable %q (root %v), want %q (%v)", got, plan.RootWritable, tt.writable, tt.root)
			}
		})
	}
}

func TestBuildAsksTwice_FS11(t *testing.T) {
	tree := &flakyTree{fakeTree: newFakeTree(t, "f /h/p/k"), left: map[string]int{"/h/p/k": 1, "/h/p": 1}, err: syscall.ESTALE}
	plan, err := Build(tree, input(t, "dR=k aW=."))
	if err != nil || listing(plan) != "writable @\nhide file @/k" {
		t.Fatalf("%v, %v", plan, err)
	}
	tree = &flakyTree{fakeTree: newFakeTree(t, "f /h/p/k"), left: map[string]int{"/h/p/k": 2}, err: syscall.EIO}
	if plan, err = Build(tree, input(t, "dR=k")); err != nil || listing(plan) != "hide directory @" {
		t.Fatalf("%v, %v", plan, err)
	}
}

// flakyTree answers the first questions about some paths with an error.
type flakyTree struct {
	*fakeTree
	left map[string]int
	err  error
}

func (f *flakyTree) Lstat(p string) (Info, error) {
	if f.left[p] > 0 {
		f.left[p]--
		return Info{}, f.err
	}
	return f.fakeTree.Lstat(p)
}

func TestBuildSize_FS65(t *testing.T) {
	in := input(t, "aW=. dW=k")
	tree := newFakeTree(t, "f /h/p/k;f /h/p/.bashrc;d /h/p/a/.idea")
	plan, err := Build(tree, in)
	if err != nil {
		t.Fatal(err)
	}
	in.MountMax, in.MountsInUse = len(plan.Steps)+7, 7
	if _, err = Build(tree, in); err != nil {
		t.Fatalf("at the limit: %v", err)
	}
	in.MountsInUse++
	_, err = Build(tree, in)
	var se *SizeError
	if !errors.As(err, &se) || !errors.Is(err, ErrTooManyMounts) {
		t.Fatalf("past the limit: %v", err)
	}
	if se.Mounts != in.MountMax+1 || se.Max != in.MountMax || se.Mandatory != 3 { // .bashrc, .idea and the pin of a
		t.Errorf("counts %+v", se)
	}
}
