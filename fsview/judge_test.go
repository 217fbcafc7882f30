package fsview

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// TestJudgeScenes_VIO10: in random scenes the judge says of every path what the plan, once executed, shows there.
func TestJudgeScenes_VIO10(t *testing.T) {
	series, data := rand.NewChaCha8([32]byte{'j', 'u', 'd', 'g', 'e'}), make([]byte, 200)
	var denied, allowed [AccessRemove + 1]int
	for range sceneCount / 2 {
		series.Read(data)
		tree, in := scene(t, data)
		plan, err := Build(tree, in)
		if err != nil {
			t.Fatalf("%v\n%s", err, describe(tree, in))
		}
		v, err := apply(tree, plan)
		if err != nil {
			t.Fatal(err)
		}
		j := NewJudge(plan)
		for _, p := range tree.paths() {
			for a := AccessRead; a <= AccessRemove; a++ {
				if tree.objects[p].kind == 'l' && a != AccessRemove {
					continue // the caller follows it
				}
				got := j.Judge(p, a)
				if err := v.agrees(p, a, got); err != nil {
					t.Fatalf("%s %s: %v: %+v\n%s\nplan:\n%s", a, p, err, got, describe(tree, in), listing(plan))
				}
				if got.Denied {
					denied[a]++
				} else {
					allowed[a]++
				}
			}
		}
	}
	for a := AccessRead; a <= AccessRemove; a++ {
		if a != AccessCreate && (denied[a] < 500 || allowed[a] < 500) {
			t.Errorf("%s: %d denied and %d allowed: the scenes say little", a, denied[a], allowed[a])
		}
	}
}

// agrees compares a judgement of a path that exists with what an executed plan shows there.
func (v *view) agrees(p string, a Access, got Judgement) error {
	s, around := v.at(p), v.at(path.Dir(p))
	visible := s.kind == onHost
	_, mounted := v.mounts[p]
	want := false
	switch a {
	case AccessRead:
		want = !visible && !v.suppliedAt(p)
	case AccessWrite, AccessCreate:
		if a == AccessCreate && !mounted {
			return nil // the path exists: what the broker does about others of its name is not the mounts' business
		}
		want = !visible || !s.writable
	case AccessRemove:
		want = p == "/" || mounted || v.pinned[p] || around.kind != onHost || !around.writable
	}
	switch {
	case got.Denied != want:
		return fmt.Errorf("want denied: %v", want)
	case got.Denied && (got.Rule == "" || got.Reason == "" || !strings.HasPrefix(got.Path, "/")):
		return fmt.Errorf("it does not say why")
	case strings.Contains(got.Rule, "(FS-"):
		return fmt.Errorf("the rule is not taken apart")
	case !got.Denied && got.Reason != "":
		return fmt.Errorf("a reason for nothing")
	}
	return nil
}

func (v *view) suppliedAt(p string) bool {
	m, ok := v.mounts[p]
	return ok && m.Kind == Supplied
}

// TestJudge covers what each kind of step makes of each access, and which rule it names.
func TestJudge(t *testing.T) {
	const tree = "f /h/p/k;f /h/p/s/x;d /h/p/s/w/deep;d /h/o;d /h/p/.idea;f /h/p/d/ro/f;l /h/p/l /h/o;f /etc/x"
	tests := []struct {
		name, rules, asked string
		want               string // rule, entry and path of the rule's object; "" allows
	}{
		{"FS-21 read-only base", "", "read /etc/x", ""},
		{"FS-26 no grant", "", "write /etc/x", "filesystem.allowWrite /etc/x"},
		{"FS-26 no grant to create", "aW=.", "create /etc/new", "filesystem.allowWrite /etc/new"},
		{"FS-26 no grant to remove", "aW=.", "remove /etc/x", "filesystem.allowWrite /etc/x"},
		{"FS-26 granted", "aW=.", "write /h/p/k", ""},
		{"FS-26 granted to create", "aW=.", "create /h/p/d/new", ""},
		{"FS-26 granted to remove", "aW=.", "remove /h/p/k", ""},
		{"FS-26 denied", "aW=. dW=d/ro", "write /h/p/d/ro/f", `filesystem.denyWrite.0 "d/ro" /h/p/d/ro`},
		{"FS-26 denied to create", "aW=. dW=d/ro", "create /h/p/d/ro/new", `filesystem.denyWrite.0 "d/ro" /h/p/d/ro`},
		{"FS-41 what holds it stays", "aW=. dW=d/ro", "remove /h/p/d", `filesystem.denyWrite.0 "d/ro" /h/p/d`},
		{"FS-41 the island stays", "aW=. dW=d/ro", "remove /h/p/d/ro", `filesystem.denyWrite.0 "d/ro" /h/p/d/ro`},
		{"FS-26 the root of a grant", "aW=.", "remove /h/p", "filesystem.allowWrite /h/p"},
		{"FS-22 hidden", "dR=s", "read /h/p/s/x", `filesystem.denyRead.0 "s" /h/p/s`},
		{"FS-22 hidden whole", "dR=s", "read /h/p/s", `filesystem.denyRead.0 "s" /h/p/s`},
		{"FS-32 hidden to write", "aW=. dR=s", "write /h/p/s/x", `filesystem.denyRead.0 "s" /h/p/s`},
		{"FS-32 hidden to create", "aW=. dR=s", "create /h/p/s/new", `filesystem.denyRead.0 "s" /h/p/s`},
		{"FS-31 hidden file", "dR=k", "read /h/p/k", `filesystem.denyRead.0 "k" /h/p/k`},
		{"FS-31 hidden file to replace", "aW=. dR=k", "remove /h/p/k", `filesystem.denyRead.0 "k" /h/p/k`},
		{"FS-25 revealed", "dR=s aR=s/w", "read /h/p/s/w/deep", ""},
		{"FS-25 revealed to write", "dR=s aR=s/w", "write /h/p/s/w/deep", "filesystem.allowWrite /h/p/s/w/deep"},
		{"FS-26 revealed in a grant", "aW=. dR=s aR=s/w", "write /h/p/s/w/deep", ""},
		{"FS-26 revealed and denied", "aW=. dR=s aR=s/w dW=s/w", "write /h/p/s/w/deep", `filesystem.denyWrite.0 "s/w" /h/p/s/w`},
		{"FS-35 protected", "aW=.", "write /h/p/.idea", "protected name .idea /h/p/.idea"},
		{"FS-35 protected, absent", "aW=.", "create /h/p/.vscode", "protected name .vscode /h/p/.vscode"},
		{"FS-38 protected, absent, other case", "aW=.", "create /h/p/.VSCode/x", "protected name .vscode /h/p/.vscode"},
		{"FS-35 deeper than the start", "aW=.", "create /h/p/d/.vscode", ""},
		{"FS-30 absent deny", "aW=. dW=none/x", "create /h/p/none", `filesystem.denyWrite.0 "none/x" /h/p/none/x`},
		{"FS-10 absent read deny", "aW=. dR=none", "read /h/p/none/x", `filesystem.denyRead.0 "none" /h/p/none/x`},
		{"FS-10 absent read deny to create", "aW=. dR=none", "create /h/p/none", `filesystem.denyRead.0 "none" /h/p/none`},
		{"FS-55 later write match", "aW=. dW=*.key", "create /h/p/new.key", `filesystem.denyWrite.0 "*.key" /h/p/new.key`},
		{"FS-55 later write match beneath", "aW=. dW=*.key", "create /h/p/new.key/x", `filesystem.denyWrite.0 "*.key" /h/p/new.key`},
		{"FS-55 later read match", "aW=. dR=*.key", "read /h/p/new.key", `filesystem.denyRead.0 "*.key" /h/p/new.key`},
		{"FS-58 mask", "aW=. mask=k", "read /h/p/k", `credentials.files.0.path "/h/p/k" /h/p/k`},
		{"FS-57 credential", "cred=k", "read /h/p/k", `credentials.files.0.path "k" /h/p/k`},
		{"FS-42 a link on the way", "aW=. dR=l/x", "remove /h/p/l", `filesystem.denyRead.0 "l/x" /h/p/l`},
		{"FS-56 disabled", "disabled", "write /etc/x", ""},
		{"FS-49 the root", "aW=/", "remove /", "root directory /"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, tree), tt.rules)
			if got := asked(t, NewJudge(plan), tt.asked); got != tt.want {
				t.Errorf("%s: %q, want %q\n%s", tt.asked, got, tt.want, listing(plan))
			}
		})
	}
}

// TestJudgeMasked_FS58: of all that shows in the place of the host's, a mask alone is there to be read, and read alone.
func TestJudgeMasked_FS58(t *testing.T) {
	plan, _ := built(t, newFakeTree(t, "f /h/p/k;f /h/p/s/x;f /h/p/f"), "aW=. mask=k dR=s dR=f")
	j := NewJudge(plan)
	for _, tt := range []struct {
		path string
		a    Access
		want bool
	}{
		{"/h/p/k", AccessRead, true}, {"/h/p/k", AccessWrite, false}, {"/h/p/k", AccessRemove, false}, {"/h/p/k/x", AccessRead, false},
		{"/h/p/f", AccessRead, false}, {"/h/p/s", AccessRead, false}, {"/h/p", AccessRead, false},
	} {
		if v := j.Judge(tt.path, tt.a); v.Masked != tt.want || v.Masked && !v.Denied {
			t.Errorf("%s %s: %+v, want masked %v", tt.a, tt.path, v, tt.want)
		}
	}
}

// TestJudgeKernel_FS47 covers what holds in every sandbox.
func TestJudgeKernel_FS47(t *testing.T) {
	tests := []struct{ rules, asked, want string }{
		{"", "read /proc/kcore", "kernel state /proc/kcore"},
		{"", "read /proc/uptime", ""},
		{"", "read /proc/self/status", ""},
		{"", "write /proc/self/oom_score_adj", ""},
		{"", "write /proc/12/comm", ""},
		{"aW=/", "write /proc/uptime", "kernel state /proc/uptime"},
		{"aW=/", "write /proc/sys/kernel/core_pattern", "kernel state /proc/sys"},
		{"", "read /proc/sys/kernel/core_pattern", ""},
		{"", "create /proc/new", "private /proc /proc"},
		{"", "remove /proc/self/fd/3", "private /proc /proc"},
		{"", "read /sys/firmware/x", "kernel state /sys/firmware"},
		{"aW=/", "write /sys/power/state", "kernel state /sys"},
		{"", "read /sys/power/state", ""},
		{"", "read /dev/null", ""},
		{"", "write /dev/null", ""},
		{"", "remove /dev/null", "private /dev /dev"},
		{"", "read /dev/sda", "private /dev /dev"},
		{"aW=/", "write /dev/sda", "private /dev /dev"},
		{"", "write /dev/pts/3", ""},
		{"", "create /dev/pts/new", "private /dev /dev"},
		{"", "create /dev/new", "private /dev /dev"},
		{"", "create /dev/shm/new", ""},
		{"", "remove /dev/shm/new", ""},
		{"", "remove /dev/shm", "private /dev /dev"},
		{"", "read /dev", ""},
		{"dR=/dev/null", "read /dev/null", `filesystem.denyRead.0 "/dev/null" /dev/null`},
		{"disabled", "write /sys/power/state", "kernel state /sys"},
	}
	for _, tt := range tests {
		t.Run(strings.TrimSpace(tt.rules+" "+tt.asked), func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, "d /h/p;f /dev/null;f /sys/power/state;f /proc/uptime"), tt.rules)
			if got := asked(t, NewJudge(plan), tt.asked); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// asked puts a question in words and gives the answer in words.
func asked(t *testing.T, j *Judge, question string) string {
	t.Helper()
	word, p, _ := strings.Cut(question, " ")
	for a := AccessRead; a <= AccessRemove; a++ {
		if a.String() != word {
			continue
		}
		v := j.Judge(p, a)
		switch {
		case !v.Denied:
			return ""
		case v.Entry != "":
			return fmt.Sprintf("%s %q %s", v.Rule, v.Entry, v.Path)
		}
		return v.Rule + " " + v.Path
	}
	t.Fatalf("unknown access %q", word)
	return ""
}

// TestJudgementExplains: which errors a refusal can have.
func TestJudgementExplains(t *testing.T) {
	tests := []struct {
		name string
		v    Judgement
		err  syscall.Errno
		want bool
	}{
		{"allowed", Judgement{}, syscall.EACCES, false},
		{"succeeded", Judgement{Denied: true, Substitute: true}, 0, false},
		{"FS-31 mode of a hidden file", Judgement{Denied: true, Substitute: true}, syscall.EACCES, true},
		{"FS-26 read-only mount", Judgement{Denied: true}, syscall.EROFS, true},
		{"FS-41 pin", Judgement{Denied: true}, syscall.EBUSY, true},
		{"FS-32 hidden", Judgement{Denied: true, Substitute: true}, syscall.ENOENT, true},
		{"not there at all", Judgement{Denied: true}, syscall.ENOENT, false},
		{"a failure of its own", Judgement{Denied: true}, syscall.EEXIST, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.v.Explains(tt.err); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// TestJudgeCause takes the texts apart that plans and guards give.
func TestJudgeCause(t *testing.T) {
	plan, _ := built(t, newFakeTree(t, "f /h/p/k"), "aW=. dR=k")
	j := NewJudge(plan)
	for _, tt := range []struct{ why, rule, entry string }{
		{"filesystem.denyRead.0 (FS-22)", "filesystem.denyRead.0", "k"},
		{`filesystem.denyRead.0 (FS-7, as at "/a (b)")`, "filesystem.denyRead.0", "k"},
		{"default write path /a (b) (FS-28)", "default write path /a (b)", ""},
		{"the sandbox's own resolver (NET-7)", "the sandbox's own resolver", ""},
		{"a text of another kind", "a text of another kind", ""},
	} {
		if rule, entry := j.causes.split(tt.why); rule != tt.rule || entry != tt.entry {
			t.Errorf("%q: %q %q, want %q %q", tt.why, rule, entry, tt.rule, tt.entry)
		}
	}
}

// TestJudgeGrant names what lets a command write.
func TestJudgeGrant(t *testing.T) {
	tests := []struct{ rules, path, want string }{
		{"aW=.", "/h/p/k", `filesystem.allowWrite.0 "."`},
		{"aW=/h/o aW=.", "/h/p/new", `filesystem.allowWrite.1 "."`},
		{"aW=/", "/etc/x", `filesystem.allowWrite.0 "/"`},
		{"aW=. dR=s aR=s/w", "/h/p/s/w/deep", `filesystem.allowWrite.0 "."`},
		{"disabled", "/etc/x", `filesystem.disabled ""`},
		{"aW=/", "/dev/null", ` ""`},
		{"", "/etc/x", ` ""`},
	}
	for _, tt := range tests {
		t.Run(tt.rules+" "+tt.path, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, "f /h/p/k;d /h/o;d /h/p/s/w/deep;f /etc/x"), tt.rules)
			rule, entry := NewJudge(plan).Grant(tt.path)
			if got := fmt.Sprintf("%s %q", rule, entry); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// FuzzJudge asks about any path under plans of any scene: the answer names a rule exactly when it denies, and what cannot be
// read cannot be written.
func FuzzJudge(f *testing.F) {
	f.Add([]byte("\x05\x01\x02\x03"), "/h/.bashrc/x")
	f.Fuzz(func(t *testing.T, data []byte, p string) {
		p = path.Clean("/" + p)
		tree, in := scene(t, data)
		plan, err := Build(tree, in)
		if err != nil {
			return
		}
		j := NewJudge(plan)
		for a := AccessRead; a <= AccessRemove; a++ {
			v := j.Judge(p, a)
			if v.Denied != (v.Rule != "") || v.Denied != (v.Reason != "") || v.Denied && !path.IsAbs(v.Path) {
				t.Errorf("%s %q: %+v", a, p, v)
			}
		}
		if read, write := j.Judge(p, AccessRead), j.Judge(p, AccessWrite); read.Denied && !write.Denied {
			t.Errorf("%q can be written but not read: %+v\n%s", p, read, describe(tree, in))
		}
	})
}

// BenchmarkJudge is one answer under a plan of 10,000 entries.
func BenchmarkJudge(b *testing.B) {
	tree := newFakeTree(b, "d /h/p")
	in := input(b, "aW=.")
	for i := range 10000 {
		name := fmt.Sprint("/h/p/d", i)
		tree.add(name, 'd')
		in.Rules.DenyRead = append(in.Rules.DenyRead, policy.PathRule{Path: name, Entry: name, Key: fmt.Sprint("filesystem.denyRead.", i)})
	}
	plan, err := Build(tree, in)
	if err != nil {
		b.Fatal(err)
	}
	j := NewJudge(plan)
	for _, p := range []string{"/h/p/d9999/some/thing/deep", "/h/p/other/some/thing"} {
		b.Run(path.Base(path.Dir(p)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				j.Judge(p, AccessRead)
				j.Judge(p, AccessCreate)
			}
		})
	}
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			NewJudge(plan)
		}
	})
}
