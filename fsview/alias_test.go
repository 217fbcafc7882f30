package fsview

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBuildAliases plans where mounts of the host show things twice (FS-7, CVE-2026-25724). The line "m /x /y" of a tree
// binds /y on /x.
func TestBuildAliases(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		want              string // steps separated by "; "
	}{
		{"nothing shows twice", "f /h/p/k;d /m", "aW=. dW=k", "writable @; read-only @/k"},
		{"the directory around a denied file", "f /h/p/w/k;d /h/p/again;m /h/p/again /h/p/w", "aW=. dW=w/k",
			"pin @/again; pin @/w; writable @; read-only @/again/k; read-only @/w/k"},
		{"the file itself", "f /h/p/k;f /h/p/a/l;m /h/p/a/l /h/p/k", "aW=. dW=k", "pin @/a; writable @; read-only @/a/l; read-only @/k"},
		{"a part of a denied directory", "f /h/p/w/s/k;d /h/p/again;m /h/p/again /h/p/w/s", "aW=. dW=w",
			"writable @; read-only @/again; read-only @/w"},
		{"a write root that is an alias", "f /o/w/k;d /h/p;m /h/p /o/w", "aW=. dW=/o/w/k", "writable @; read-only @/k"},
		{"nothing re-opens it there", "f /h/s/k;d /h/p/a;m /h/p/a /h/s", "dR=~/s aR=a aW=a/k aW=a", "hide directory @/a; hide directory /h/s"},
		{"what is lifted is not denied elsewhere", "f /h/s/k;d /h/p/a;m /h/p/a /h/s", "dR=~/s aR=~/s", ""},
		{"credentials", "f /h/.netrc;f /h/p/n;m /h/p/n /h/.netrc", "cred=~/.netrc aR=n", "hide file /h/.netrc; hide file @/n"},
		{"srt's own file stays readable", "f /h/s/srt;d /o;m /o /h/s;d /h/p", "dR=~/s keep=/o/srt own=/o/srt aW=/o",
			"hide directory /h/s; hide directory /o; reveal /o/srt make srt"},
		{"own files", "f /o/srt;d /h/p/b;m /h/p/b /o", "aW=. own=/o/srt", "pin @/b; writable @; read-only @/b/srt"},
		{"protected names", "f /h/p/.git/HEAD;d /h/p/.git/hooks;d /w;m /w /h/p", "aW=. aW=/w",
			"pin @/.git; pin /w/.git; writable @; read-only @/.git/hooks; writable /w; read-only /w/.git/hooks"},
		{"a protected name under another one", "d /h/q/.git/hooks;d /h/p/tools;m /h/p/tools /h/q/.git/hooks", "aW=.",
			"writable @; read-only @/tools"},
		{"a .git under another name", "d /h/q/.git/hooks;d /h/p/g;m /h/p/g /h/q/.git", "aW=.", "pin @/g; writable @; read-only @/g/hooks"},
		{"the working directory deep in a write root", "f /h/p/a/b/.bashrc;d /w/1/2/3/4;m /w/1/2/3/4 /h/p", "aW=/w",
			"pin /w/1/2/3/4/a/b; pin /w/1/2/3/4/a; pin /w/1/2/3/4; pin /w/1/2/3; pin /w/1/2; pin /w/1; writable /w; " +
				"read-only /w/1/2/3/4/a/b/.bashrc"},
		{"a link on the way", "f /h/p/t/k;l /o/l /h/p/t;d /h/p/w;m /h/p/w /o", "aW=. dW=/o/l/k",
			"pin @/w/l; pin @/t; pin @/w; writable @; read-only @/t/k"},
		{"a mount where things are anyway", "f /h/p/w/k;m /h/p/w /h/p/w", "dR=~ aR=w", "hide directory /h; reveal @/w make p,p/w"},
		{"a mount that is covered again", "f /h/p/k;d /o/a;d /e;m /o/a /h/p;m /o /e", "dW=k aW=/o aW=.", "writable @; read-only @/k; writable /o"},
		{"a mount of a mount", "f /h/s/k;d /o/s;d /h/p/a;m /o/s /h/s;m /h/p/a /o/s", "dR=/o/s/k aW=.",
			"pin @/a; writable @; hide file @/a/k; hide file /h/s/k; hide file /o/s/k"},
		{"the other name of everything", "f /h/p/k;d /mnt/top;m /mnt/top /", "dR=/mnt/top aW=.", "writable @; hide directory /mnt/top"},
		{"everything is denied, and so is its other name", "f /h/p/k;d /mnt/top;m /mnt/top /", "dR=/ aR=. aR=/mnt",
			"hide directory /h; reveal @ make p; hide directory /mnt/top"},
		{"everything is denied but a mount", "f /h/q/k;d /mnt/q;m /mnt/q /h/q", "dR=/ aR=/mnt/q",
			"hide directory /h; hide directory /mnt; reveal /mnt/q make q"},
		{"FS-11 an alias that cannot be reached", "f /h/s/k;d /r/x/y uid=0;d /r uid=0 mode=700;m /r/x/y /h/s", "dR=~/s", "hide directory /h/s; hide directory /r"},
		{"FS-47 a kernel mount says nothing of /sys", "d /sys/kernel;d /c/sys;m /c/sys /sys", "proc=/c/sys", "hide directory /c/sys"},
		{"FS-56 disabled", "f /h/s/k;d /h/p/a;m /h/p/a /h/s", "disabled dR=~/s", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(tt.tree, "/h/p") {
				tt.tree = "d /h/p;" + tt.tree
			}
			plan, _ := built(t, newFakeTree(t, tt.tree), tt.rules)
			if d := cmp.Diff(strings.ReplaceAll(tt.want, "; ", "\n"), listing(plan)); d != "" {
				t.Errorf("steps (-want +got):\n%s", d)
			}
		})
	}
}

func TestMountTable(t *testing.T) {
	root := Mount{ID: 1, Parent: 0, Dev: 1, Root: "/", Point: "/"}
	tests := []struct {
		name   string
		mounts []Mount
		p      string
		want   string // other paths; "none" for no table at all
	}{
		{"no mounts", nil, "/a", "none"},
		{"devices of their own", []Mount{root, {2, 1, 2, "/", "/t"}, {3, 1, 3, "/", "/u"}}, "/a", "none"},
		{"parts side by side", []Mount{{1, 0, 1, "/root", "/"}, {2, 1, 1, "/home", "/home"}, {3, 1, 1, "/ro", "/x"}}, "/a", "none"},
		{"no tree", []Mount{root, {2, 1, 4, "net:[4026531840]", "/n"}, {3, 1, 4, "net:[4026531840]", "/m"}}, "/n", "none"},
		{"a second place", []Mount{root, {2, 1, 1, "/a", "/b"}}, "/a/x", "/b/x"},
		{"and back", []Mount{root, {2, 1, 1, "/a", "/b"}}, "/b/x", "/a/x"},
		{"names, not beginnings of names", []Mount{root, {2, 1, 1, "/a", "/b"}}, "/ax", ""},
		{"a part", []Mount{root, {2, 1, 1, "/a/b/c", "/p"}}, "/a/b", "/p"},
		{"covered at its place", []Mount{root, {2, 1, 1, "/a", "/b"}, {3, 2, 2, "/", "/b"}}, "/a/x", ""},
		{"covered from above", []Mount{root, {2, 1, 1, "/a", "/b/c"}, {3, 1, 2, "/", "/b"}}, "/a/x", ""},
		{"covered within", []Mount{root, {2, 1, 1, "/a", "/b"}, {3, 2, 2, "/", "/b/x"}}, "/a/x", ""},
		{"covered beside", []Mount{root, {2, 1, 1, "/a", "/b"}, {3, 2, 2, "/", "/b/y"}}, "/a/x", "/b/x"},
		{"the order says nothing", []Mount{{3, 2, 2, "/", "/b"}, {2, 1, 1, "/a", "/b"}, root}, "/a/x", ""},
		{"on top of the cover", []Mount{root, {3, 1, 2, "/", "/b"}, {2, 3, 1, "/a", "/b"}}, "/a/x", "/b/x"},
		{"btrfs with its top level", []Mount{{1, 0, 7, "/@", "/"}, {2, 1, 7, "/@home", "/home"}, {3, 1, 7, "/", "/mnt"}}, "/home/u/k", "/mnt/@home/u/k"},
		{"the top level itself", []Mount{{1, 0, 7, "/@", "/"}, {2, 1, 7, "/@home", "/home"}, {3, 1, 7, "/", "/mnt"}}, "/mnt", ""},
		{"a mount beneath itself", []Mount{root, {2, 1, 1, "/a", "/a/b"}}, "/a/b", ""},
		{"in a mount beneath itself", []Mount{root, {2, 1, 1, "/a", "/a/b"}}, "/a/b/k", "/a/k"},
		{"a deleted place", []Mount{root, {2, 1, 1, "/a//deleted", "/b"}}, "/a", "/b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			table, err := newMountTable(tt.mounts)
			if err != nil {
				t.Fatal(err)
			}
			got := "none"
			if table != nil {
				wholes, parts := table.others(tt.p)
				got = strings.Join(append(wholes, parts...), " ")
			}
			if got != tt.want {
				t.Errorf("others(%q) = %q, want %q", tt.p, got, tt.want)
			}
		})
	}
	if _, err := newMountTable([]Mount{{2, 1, 1, "/", "/a"}, {3, 1, 1, "/", "/b"}}); !errors.Is(err, errNoRoot) {
		t.Errorf("without a root: %v", err)
	}
}
