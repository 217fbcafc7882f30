package fsview

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// FS-51, FS-45, CLI-30: whatever is srt's own or its caller's has one name, so that a command cannot reach it by another.
func TestOwnFilesHaveOneName_FS51_FS45(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		refused           string // the path in the error; empty for a plan
	}{
		{"one name", "f /h/p/s.json", "aW=. own=/h/p/s.json", ""},
		{"two names", "f /h/p/s.json links=2", "aW=. own=/h/p/s.json", "/h/p/s.json"},
		{"outside of the write roots", "f /h/s.json links=2", "aW=. own=/h/s.json", "/h/s.json"},
		{"through a link", "f /h/s.json links=2;l /h/p/s.json ../s.json", "aW=. own=/h/p/s.json", "/h/s.json"},
		{"a link to it", "f /h/s.json;l /h/p/s.json ../s.json links=2", "aW=. own=/h/p/s.json", ""},
		{"a FIFO", "p /h/p/fifo links=2", "aW=. own=/h/p/fifo", "/h/p/fifo"},
		{"a directory", "d /h/p/conf links=5", "aW=. own=/h/p/conf", ""},
		{"root's file, another caller", "f /h/p/s.json links=2 uid=0", "aW=. own=/h/p/s.json", ""},
		{"root's file, root", "f /h/p/s.json links=2 uid=0", "root aW=. own=/h/p/s.json", "/h/p/s.json"},
		{"another user's file, root", "f /h/p/s.json links=2", "root aW=. own=/h/p/s.json", "/h/p/s.json"},
		{"another user's file", "f /h/p/s.json links=2 uid=7", "aW=. own=/h/p/s.json", "/h/p/s.json"}, // it may be for the caller's group to write
		{"nothing can be written", "f /h/p/s.json links=2", "own=/h/p/s.json", ""},
		{"a default write path", "f /h/p/s.json links=2;d /tmp/claude", "extra=/tmp/claude own=/h/p/s.json", "/h/p/s.json"},
		{"what a pattern lets be written", "f /h/p/s.json links=2;f /h/p/a1", "aW=a* own=/h/p/s.json", "/h/p/s.json"},
		{"the program", "f /h/p/srt links=2", "aW=. program=/h/p/srt", ""},
		{"without any rule", "f /h/p/s.json links=2", "disabled own=/h/p/s.json", ""},

		{"private, one name", "p /h/p/ctl", "aW=. privateFile=/h/p/ctl", ""},
		{"private, two names", "p /h/p/ctl links=2", "aW=. privateFile=/h/p/ctl", "/h/p/ctl"},
		{"private, a file", "f /h/p/ctl links=2", "aW=. privateFile=/h/p/ctl", "/h/p/ctl"},
		{"private, nothing can be written", "p /h/p/ctl links=2", "privateFile=/h/p/ctl", "/h/p/ctl"},
		{"private, root's", "p /h/p/ctl links=2 uid=0", "aW=. privateFile=/h/p/ctl", "/h/p/ctl"},
		{"private, without any rule", "p /h/p/ctl links=2", "disabled privateFile=/h/p/ctl", "/h/p/ctl"},
		{"private, through a link", "p /h/ctl links=3;l /h/p/l ../ctl", "aW=. privateFile=/h/p/l", "/h/ctl"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := newFakeTree(t, "d /h/p;"+tt.tree)
			in := input(t, tt.rules)
			tree.uid = in.UID
			_, err := Build(tree, in)
			entry, refused := errors.AsType[*EntryError](err)
			switch {
			case tt.refused == "" && err != nil:
				t.Errorf("%v", err)
			case tt.refused != "" && (!refused || !errors.Is(err, ErrOtherName) || entry.Path != tt.refused):
				t.Errorf("%v, want that %s has another name", err, tt.refused)
			}
		})
	}
}

// FS-51: srt's program is protected like its other files, and stays readable like what is named by Keep (FS-23).
func TestProgram_FS51_FS23(t *testing.T) {
	tree := "d /h/p;f /h/p/s/srt"
	for rules, want := range map[string]string{
		"aW=. program=/h/p/s/srt":      "pin @/s; writable @; read-only @/s/srt",
		"aW=. dR=s program=/h/p/s/srt": "writable @; hide directory @/s; reveal @/s/srt make srt",
		"aW=. program=/h/none":         "writable @",
	} {
		plan, _ := built(t, newFakeTree(t, tree), rules)
		if got := strings.ReplaceAll(listing(plan), "\n", "; "); got != want {
			t.Errorf("%s: %s, want %s", rules, got, want)
		}
	}
}

// CLI-30: where the private file is not there, nothing can be put in its place, for whoever opens it next.
func TestAbsentPrivateFiles_CLI30(t *testing.T) {
	for rules, want := range map[string]bool{
		"aW=. privateFile=/h/p/ctl":          true,
		"aW=. privateFile=/h/p/ctl/x":        true,
		"privateFile=/h/p/ctl":               false,
		"disabled privateFile=/h/p/ctl":      false,
		"aW=. dR=ctl privateFile=/h/p/ctl/x": false,
		"aW=. privateFile=/proc/self/fd/500": false,
	} {
		plan, _ := built(t, newFakeTree(t, "d /h/p;"+map[bool]string{true: "d /h/p/ctl"}[strings.Contains(rules, "dR=")]), rules)
		denied := slices.ContainsFunc(plan.Absent, func(a Absent) bool { return a.Dir == "/h/p" && a.Name == "ctl" && a.Write && !a.Read })
		if denied != want {
			t.Errorf("%s: %+v", rules, plan.Absent)
		}
	}
}

// FS-49: a hidden working directory is left for the home or the top, with a warning; one that there is not is an error.
func TestWorkingDirectory_FS49(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		dir               string
		err               error
	}{
		{"there", "d /h/p", "", "/h/p", nil},
		{"through a link", "d /h/q;l /h/p q", "", "/h/q", nil},
		{"hidden", "d /h/p", "dR=/h/p", "/h", nil},
		{"hidden with the home", "d /h/p", "dR=/h", "/", nil},
		{"hidden, and no home", "d /h/p", "dR=/h/p home=", "/", nil},
		{"hidden, and the home is gone", "d /h/p", "dR=/h/p home=/none", "/", nil},
		{"of the kernel", "d /h/p", "cwd=/proc/self", "/proc/self", nil},
		{"gone", "d /h", "", "", syscall.ENOENT},
		{"gone, where all is hidden", "d /h/p", "dR=/h cwd=/h/p/x", "", syscall.ENOENT},
		{"gone, without any rule", "d /h", "disabled", "", syscall.ENOENT},
		{"a dangling link", "l /h/p none", "", "", syscall.ENOENT},
		{"a file", "f /h/p", "", "", syscall.ENOTDIR},
		{"beneath a file", "f /h/p", "cwd=/h/p/x", "", syscall.ENOTDIR},
		{"a circle of links", "l /h/p q;l /h/q p", "", "", syscall.ELOOP},
		{"not to be looked at", "d /h/p eio", "", "", syscall.EIO},
		{"behind a closed door", "d /h/p mode=000;d /h/p/x", "cwd=/h/p/x", "", syscall.EACCES},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := newFakeTree(t, tt.tree)
			in := input(t, tt.rules)
			tree.uid = in.UID
			plan, err := Build(tree, in)
			if wrong, ok := errors.AsType[*DirError](err); tt.err != nil && (!ok || wrong.Path != in.Cwd || !errors.Is(err, tt.err)) || tt.err == nil && err != nil {
				t.Fatalf("%v, want %v", err, tt.err)
			}
			if tt.err == nil && plan.Dir != tt.dir {
				t.Errorf("%s, want %s", plan.Dir, tt.dir)
			}
		})
	}
}
