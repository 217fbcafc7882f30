package fsview

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// absentNames writes the rules for absent names that do not come from protected names, or with mandatory only those. Each
// is "path" with the first missing name in brackets, and the letters of what it denies: c reate, o pen, h ard, f old.
func absentNames(plan *Plan, mandatory bool) string {
	var list []string
	for _, a := range plan.Absent {
		if strings.Contains(a.Why, "(FS-35)") != mandatory {
			continue
		}
		rest := strings.TrimPrefix(tail(a.Dir, a.Path), "/")
		line := join(a.Dir, "["+a.Name+"]"+strings.TrimPrefix(rest, a.Name)) + " "
		for _, f := range []struct {
			is     bool
			letter string
		}{{a.Write, "c"}, {a.Read, "o"}, {a.Hard, "h"}, {a.Fold, "f"}} {
			if f.is {
				line += f.letter
			}
		}
		list = append(list, line)
	}
	return strings.ReplaceAll(strings.Join(list, "; "), "/h/p", "@")
}

func TestAbsentEntries(t *testing.T) {
	long := strings.Repeat("n", maxName+1)
	tests := []struct {
		name, tree, rules string
		want              string
	}{
		{"FS-30 case 5 file", "", "aW=. dW=new", "@/[new] c"},
		{"FS-30 case 5 missing parents", "", "aW=. dW=nd/x/y", "@/[nd]/x/y c"},
		{"FS-30 in a directory that exists", "d /h/p/a/b", "aW=. dW=a/b/c/d", "@/a/b/[c]/d c"},
		{"FS-30 no write root covers it", "", "aW=. dW=/h/none dW=/none/x", ""},
		{"FS-26 no write root at all", "", "dW=none", ""},
		{"FS-30 another deny covers it", "d /h/p/prot", "aW=. dW=prot dW=prot/x", ""},
		{"FS-30 hidden around it", "d /h/p/sec", "aW=. dR=sec dW=sec/none", ""},
		{"FS-30 a read-only file system", "d /h/p rofs", "aW=. dW=x", ""},
		{"FS-30 another user's directory", "d /h/p/o uid=7", "aW=. dW=o/x", ""},
		{"FS-30 another user's directory with write permission for all", "d /h/p/o uid=7 mode=777", "aW=. dW=o/x", "@/o/[x] c"},
		{"FS-30 own directory without write permission", "d /h/p/o mode=555", "aW=. dW=o/x", "@/o/[x] c"},
		{"FS-30 root creates anywhere", "d /h/p/o uid=7 mode=555", "root aW=. dW=o/x", "@/o/[x] c"},
		{"FS-30 case 6 beneath a file the file is denied", "f /h/p/f", "aW=. dW=f/x", ""},
		{"FS-30 a name that is too long", "", "aW=. dW=" + long, ""},
		{"FS-30 dangling link into a root", "l /h/p/l gone/x", "aW=. dW=l", "@/[gone]/x c"},
		{"FS-30 dangling link out of the roots", "l /h/p/l /h/gone", "aW=. dW=l", ""},
		{"FS-42 a link loop is held, nothing can be made", "l /h/p/a b;l /h/p/b a", "aW=. dW=a", ""},
		{"FS-47 replaced trees", "", "aW=/ dW=/dev/none dW=/proc/none", ""},
		{"FS-10 read", "", "dR=none", "@/[none] o"},
		{"FS-10 read in a write root", "", "aW=. dR=nd/x", "@/[nd]/x o"},
		{"FS-10 read outside of all write roots", "d /etc", "aW=. dR=/etc/none", "/etc/[none] o"},
		{"FS-10 read of both lists", "", "aW=. dR=none dW=none", "@/[none] co"},
		{"FS-10 read of both lists with different missing parts", "", "aW=. dR=nd/a dW=nd/b", "@/[nd]/a o; @/[nd]/b c"},
		{"FS-10 read beneath a file", "f /h/p/k", "dR=k/x", "@/[k]/x o"},
		{"FS-10 read of a link loop", "l /h/p/a a", "dR=a", "@/[a] o"},
		{"FS-10 read beneath what is hidden", "d /h/p/s", "dR=s dR=s/none", ""},
		{"FS-10 read beneath a hidden file", "f /h/p/s", "dR=s dR=s/none", ""},
		{"FS-22 everything is hidden", "", "dR=/ dR=/h/none", ""},
		{"FS-22 read-denied within what is shown again", "d /h/p/s", "dR=~ aR=. dR=none", "@/[none] o"},
		{"FS-57 credential", "", "cred=~/.netrc", "/h/[.netrc] oh"},
		{"FS-57 credential and deny", "", "dR=~/.netrc cred=~/.netrc", "/h/[.netrc] oh"},
		{"FS-51 own file", "", "aW=. own=/h/p/srt.json", "@/[srt.json] c"},
		{"FS-51 own file and its directory", "d /h uid=1000", "aW=/h own=/h/.config/srt/settings.json", "/h/[.config]/srt/settings.json c"},
		{"FS-51 own file outside of the write roots", "", "aW=. own=/h/.srt.json", ""},
		{"FS-51 own file that is a dangling link", "l /h/p/s.json t.json", "aW=. own=/h/p/s.json", "@/[t.json] c"},
		{"FS-7 every path of the directory", "d /h/q/d;d /h/p/a;m /h/p/a /h/q", "aW=. dW=~/q/d/new/file", "@/a/d/[new]/file c"},
		{"FS-7 every path, reading", "d /h/q/d;d /h/p/a;m /h/p/a /h/q", "dR=~/q/d/k", "@/a/d/[k] o; /h/q/d/[k] o"},
		{"FS-7 another deny at the other path", "d /h/q/d;d /h/p/a;m /h/p/a /h/q", "aW=. dW=~/q/d/new dW=a/d", ""},
		{"FS-7 a place beneath a file in the way", "f /h/q/k;d /h/p/a;m /h/p/a /h/q", "dR=~/q/k/x", "@/a/[k]/x o; /h/q/[k]/x o"},
		{"FS-56 disabled", "", "disabled aW=. dW=new dR=none", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := newFakeTree(t, "d /h/p;"+tt.tree)
			if strings.Contains(tt.tree, "d /h/p rofs") {
				tree.objects["/h/p"].rofs = true
			}
			plan, v := built(t, tree, tt.rules)
			if d := cmp.Diff(tt.want, absentNames(plan, false)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if err := keptInPlace(v, plan); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAbsentPins_FS41_FS42: whoever judges a name goes by the directory, which therefore stays, with all that leads to it.
func TestAbsentPins_FS41_FS42(t *testing.T) {
	tests := []struct{ name, tree, rules, want string }{
		{"the directory and those above it", "d /h/p/a/b", "aW=. dW=a/b/c", "pin @/a/b; pin @/a; writable @"},
		{"a link on the way", "l /h/p/l a;d /h/p/a", "aW=. dW=l/c", "pin @/a; pin @/l; writable @"},
		{"a dangling link", "l /h/p/l gone", "aW=. dW=l", "pin @/l; writable @"},
		{"reading", "d /h/p/a", "aW=. dR=a/c", "pin @/a; writable @"},
		{"reading, outside of the write roots", "d /h/q/a", "aW=. dR=/h/q/a/c", "writable @"},
		{"the write root needs none", "", "aW=. dW=c", "writable @"},
		{"at a second path", "d /h/q/d;d /h/p/a;m /h/p/a /h/q", "aW=. dW=~/q/d/new", "pin @/a/d; pin @/a; writable @"},
		{"everything writable", "d /h/p/a;d /etc", "root aW=/ home= dW=a/c dW=/etc/x", "pin @/a; pin @; writable /etc; writable /h"},
		{"in a directory that nobody can create in", "d /h/p/in/o uid=5", "aW=. dW=in/o/x", "pin @/in/o; pin @/in; writable @"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
			if d := cmp.Diff(strings.ReplaceAll(tt.want, "; ", "\n"), listing(plan)); d != "" {
				t.Errorf("steps (-want +got):\n%s", d)
			}
		})
	}
}

// TestAbsentUnreachableAlias_FS11: a second path of the directory that the caller cannot reach is protected by a directory
// above it, and where none can be, nothing starts.
func TestAbsentUnreachableAlias_FS11(t *testing.T) {
	const disk = "d /h/p;d /h/s;d /r/x/y;m /r/x/y /h/s"
	tree := newFakeTree(t, disk)
	tree.objects["/r"].mode = 0o700
	for _, tt := range []struct{ rules, want string }{
		{"dR=~/s/none", "hide directory /r"}, {"root aW=/ cwd=/h home=", "writable /h\nwritable /r"},
	} {
		plan, _ := built(t, tree, tt.rules)
		if got := listing(plan); got != tt.want && !strings.Contains(tt.rules, "root") {
			t.Errorf("%s:\n%s", tt.rules, got)
		}
	}
	in := input(t, "dR=~/s/none")
	in.Mounts = tree.mounts
	for p, o := range tree.objects {
		if p == "/r" {
			o.err = syscall.EIO
		}
	}
	var ee *EntryError
	if _, err := Build(tree, in); !errors.As(err, &ee) || !errors.Is(err, ErrUninspected) {
		t.Errorf("an alias that nothing can stand for: %v", err)
	}
}

// TestAbsentLetterCase_FS38: a protected name counts in any letter case, an entry only as it is written, also where both
// name the same.
func TestAbsentLetterCase_FS38(t *testing.T) {
	plan, _ := built(t, newFakeTree(t, "d /h/p"), "aW=. dR=.bashrc dW=.bashrc")
	var got []string
	for _, a := range plan.Absent {
		if a.Path == "/h/p/.bashrc" {
			got = append(got, fmt.Sprint("create ", a.Write, " open ", a.Read, " fold ", a.Fold))
		}
	}
	slices.Sort(got)
	want := "create true open false fold true; create true open true fold false"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("%s, want %s", s, want)
	}
}

func TestAllowRead_FS22(t *testing.T) {
	tests := []struct{ tree, rules, want string }{
		{"", "dR=s aR=s/none aR=k", "/h/p/k /h/p/s/none"},
		{"f /h/p/k;d /h/p/w;d /h/p/v", "aR=k aW=w aW=v extra=/h/.npm/_logs", "/h/p/k /h/p/v /h/p/w"},
		{"f /h/p/k", "aW=k", ""},
		{"d /h/.npm/_logs;d /h/p/x", "extra=/h/.npm/_logs aW=x", "/h/p/x"},
		{"l /h/p/l k;f /h/p/k", "aR=l", "/h/p/l"},
		{"l /h/p/l k;f /h/p/k;f /h/p/s/x;l /h/p/s/l ../k", "dR=s aR=s/l", ""},
	}
	for _, tt := range tests {
		plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
		if got := strings.Join(plan.AllowRead, " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.rules, got, tt.want)
		}
	}
}

// TestAbsentOrder: rules come in path order, and each once.
func TestAbsentOrder(t *testing.T) {
	plan, _ := built(t, newFakeTree(t, "d /h/p"), "aW=. dW=c dW=a dW=b dW=a dR=a")
	seen := map[string]bool{}
	last := ""
	for _, a := range plan.Absent {
		key := fmt.Sprint(a.Path, a.Fold)
		if a.Path < last || seen[key] {
			t.Errorf("%q is out of order or twice", a.Path)
		}
		last, seen[key] = a.Path, true
	}
}
