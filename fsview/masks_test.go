package fsview

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// fakeOf is a content function that answers for a few names in its own way.
func fakeOf(_ int, p string) ([]byte, error) {
	switch {
	case strings.HasSuffix(p, "/binary"):
		return nil, fmt.Errorf("%w: not UTF-8", ErrHideUnmasked)
	case strings.HasSuffix(p, "/nothing"):
		return nil, fmt.Errorf("%w: no match", ErrLeaveUnmasked)
	case strings.HasSuffix(p, "/locked"):
		return nil, syscall.EACCES
	case strings.HasSuffix(p, "/broken"):
		return nil, syscall.EIO
	}
	return []byte("fake of " + p), nil
}

func TestMasks(t *testing.T) {
	tests := []struct {
		name, tree, rules, masks string
		want                     string // steps
		says                     string // part of a warning or note
	}{
		{"FS-58 case 33", "f /h/p/tok", "dR=tok aW=tok aW=.", "tok", "writable @; mask @/tok", ""},
		{"FS-58 beats a credential deny", "f /h/p/tok", "cred=tok", "tok", "mask @/tok", ""},
		{"FS-58 outside of every list", "f /h/tok;d /h/p", "aW=.", "/h/tok", "writable @; mask /h/tok", ""},
		{"FS-58 every name that leads there", "l /h/p/l s/tok;f /h/p/s/tok", "aW=.", "l", "pin @/l; pin @/s; writable @; mask @/s/tok", ""},
		{"FS-58 a mount shows it again", "f /h/q/tok;d /h/p/a;m /h/p/a /h/q", "aW=.", "/h/q/tok", "pin @/a; writable @; mask @/a/tok; mask /h/q/tok", ""},
		{"CRED-9 a denied file through a link that a command can have made", "l /h/p/w/l ../s;f /h/p/s/tok", "dR=s aW=w", "w/l/tok",
			"pin @/w/l; hide directory @/s; writable @/w", `is denied and is reached through the link "/h/p/w/l"`},
		{"CRED-9 the same, denied itself", "l /h/p/w/tok ../s;f /h/p/s", "cred=s aW=w", "w/tok", "pin @/w/tok; hide file @/s; writable @/w", "is denied and is reached"},
		{"FS-58 a denied file through a link that no command can make", "l /h/p/l s;f /h/p/s/tok;d /h/p/w", "dR=s aW=w", "l/tok", "hide directory @/s; mask @/s/tok make tok; writable @/w", ""},
		{"FS-58 a denied file through a link where writing is denied", "l /h/p/w/k/l ../../s;f /h/p/s/tok", "dR=s aW=w dW=w/k", "w/k/l/tok",
			"hide directory @/s; mask @/s/tok make tok; writable @/w; read-only @/w/k", ""},
		{"FS-58 in a hidden directory", "f /h/p/s/a/tok;f /h/p/s/k", "dR=s", "s/a/tok", "hide directory @/s; mask @/s/a/tok make a,a/tok", ""},
		{"FS-58 in a hidden credential directory", "f /h/p/s/tok", "cred=s", "s/tok", "hide directory @/s; mask @/s/tok make tok", ""},
		{"FS-58 beside what is shown again", "f /h/p/s/a/tok;f /h/p/s/a/k", "dR=s aR=s/a/k", "s/a/tok",
			"hide directory @/s; reveal @/s/a/k make a,a/k; mask @/s/a/tok make a/tok", ""},
		{"FS-58 in what is shown again", "f /h/p/s/a/tok", "dR=s aR=s/a", "s/a/tok", "hide directory @/s; reveal @/s/a make a; mask @/s/a/tok", ""},
		{"FS-58 in a denied directory", "f /h/p/d/tok", "aW=. dW=d", "d/tok", "writable @; read-only @/d; mask @/d/tok", ""},
		{"FS-41 directories between", "f /h/p/a/b/tok", "aW=.", "a/b/tok", "pin @/a/b; pin @/a; writable @; mask @/a/b/tok", ""},
		{"FS-41 no write limits", "f /h/p/a/tok;f /tok", "root aW=/ home= cwd=/proc", "/h/p/a/tok /tok", "pin @/a; pin @; writable /h; mask @/a/tok; mask /tok", ""},
		{"FS-56 FS-41 disabled", "f /h/p/tok;f /h/p/.bashrc", "disabled dR=. dW=.", "tok", "pin @; writable /h; mask @/tok", ""},
		{"FS-56 disabled, at a second path", "f /h/q/tok;d /h/p/a;m /h/p/a /h/q", "disabled", "/h/q/tok",
			"pin @/a; pin @; pin /h/q; writable /h; mask @/a/tok; mask /h/q/tok", ""},
		{"FS-22 a re-allowed link to a masked file", "l /h/p/d/l tok;f /h/p/d/tok", "dR=d aR=d/l", "d/tok", "hide directory @/d; mask @/d/tok make tok",
			"the name stays hidden"},
		{"FS-22 a re-allowed link to a directory around one", "l /h/p/d/l t;f /h/p/d/t/tok", "dR=d aR=d/l", "d/t/tok",
			"hide directory @/d; mask @/d/t/tok make t,t/tok", "the name stays hidden"},
		{"FS-35 a protected name", "f /h/p/.bashrc", "aW=.", ".bashrc", "writable @; mask @/.bashrc", ""},
		{"FS-47 in /sys", "f /sys/fs/tok;d /h/p", "", "/sys/fs/tok", "mask /sys/fs/tok late", ""},
		{"FS-47 in /dev", "f /dev/tok;d /h/p", "", "/dev/tok", "hide file /dev/tok late", ""},
		{"FS-59 missing", "d /h/p", "aW=.", "tok", "writable @", `("tok"): "/h/p/tok" does not exist, nothing to mask`},
		{"CRED-9 a directory", "d /h/p/tok", "aW=.", "tok", "writable @; hide directory @/tok", "is a directory, which cannot be masked, so it is hidden"},
		{"CRED-9 a FIFO", "p /h/p/tok", "", "tok", "hide file @/tok", "is not a regular file"},
		{"CRED-9 not text", "f /h/p/binary", "aR=binary", "binary", "hide file @/binary", "cannot be masked (not UTF-8)"},
		{"FS-59 unreadable: a command could make it readable", "f /h/p/locked", "aW=.", "locked", "writable @; hide file @/locked", "permission denied"},
		{"FS-59 no match", "f /h/p/nothing", "aW=.", "nothing", "writable @", "stays as it is"},
		{"FS-11 not inspectable", "f /h/p/s/tok eio", "", "s/tok", "hide directory @/s", "is hidden in its place"},
		{"FS-7 everything through a link", "l /h/p/d/up /;f /h/p/d/x", "", "d/up", "hide directory @/d", "is a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := newFakeTree(t, tt.tree)
			in := input(t, tt.rules)
			tree.uid, in.Mounts, in.FakeContent = in.UID, tree.mounts, fakeOf
			for _, m := range strings.Fields(tt.masks) {
				in.Masks = append(in.Masks, policy.PathRule{Key: "credentials.files.0.path", Entry: m, Path: absoluteIn("/h/p", m)})
			}
			plan, err := Build(tree, in)
			if err != nil {
				t.Fatal(err)
			}
			v, err := apply(tree, plan)
			if err == nil {
				err = v.checkPinned()
			}
			if err != nil {
				t.Errorf("%v", err)
			}
			if d := cmp.Diff(strings.ReplaceAll(tt.want, "; ", "\n"), listing(plan)); d != "" {
				t.Errorf("steps (-want +got):\n%s", d)
			}
			if said := strings.Join(append(plan.Warnings, plan.Notes...), "\n"); !strings.Contains(said, tt.says) {
				t.Errorf("%q does not say %q", said, tt.says)
			}
		})
	}
}

// TestMaskMeansDenyWithoutContent_FS59: without a content function a masked file is hidden, whatever the lists say, and
// the person is told.
func TestMaskMeansDenyWithoutContent_FS59(t *testing.T) {
	for _, words := range []string{"", "aW=. aR=tok", "disabled"} {
		in := input(t, words)
		in.Masks = maskRules("/h/p/tok")
		plan, err := Build(newFakeTree(t, "f /h/p/tok"), in)
		if err != nil || !strings.Contains(listing(plan), "hide file @/tok") ||
			!strings.Contains(strings.Join(plan.Warnings, "\n"), `"/h/p/tok" is to be masked, for which`) {
			t.Errorf("%q: %v, %v", words, plan, err)
		}
	}
}

// TestMaskLastWins_FS58: of two entries for one file, also through a link, the last one counts and is asked for alone.
func TestMaskLastWins_FS58(t *testing.T) {
	in := input(t, "")
	in.Masks = maskRules("/h/p/tok", "/h/p/l")
	in.Masks[1].Key = "the last"
	asked := 0
	in.FakeContent = func(entry int, p string) ([]byte, error) {
		if asked++; entry != 1 {
			t.Errorf("asked for entry %d, want the last", entry)
		}
		return []byte(p), nil
	}
	plan, err := Build(newFakeTree(t, "f /h/p/tok;l /h/p/l tok"), in)
	if err != nil || asked != 1 || len(plan.Steps) != 1 || plan.Steps[0].Why != "the last (FS-58)" {
		t.Errorf("asked %d times, %+v, %v", asked, plan, err)
	}
}

// TestMaskFails_FS59: a content that cannot be made stops the start, and so does a place that cannot be looked at.
func TestMaskFails_FS59(t *testing.T) {
	for _, tt := range []struct {
		tree, mask string
		reason     error
	}{{"f /h/p/broken", "/h/p/broken", ErrMask}, {"f /bad eio", "/bad", ErrUninspected}} {
		in := input(t, "")
		in.Masks, in.FakeContent = maskRules(tt.mask), fakeOf
		var ee *EntryError
		if _, err := Build(newFakeTree(t, tt.tree), in); !errors.As(err, &ee) || !errors.Is(err, tt.reason) || !errors.Is(err, syscall.EIO) || ee.Advice == "" {
			t.Errorf("%s: %v", tt.mask, err)
		}
	}
}

// TestMaskAtAnUnreachableAlias_FS11: where the caller cannot reach a second path of the file, a directory above it is
// hidden; a fake would be no stand-in for a directory.
func TestMaskAtAnUnreachableAlias_FS11(t *testing.T) {
	tree := newFakeTree(t, "f /h/s/tok;d /h/p;d /r/x;m /r/x /h/s")
	tree.objects["/r"].mode = 0o700
	if plan, _ := built(t, tree, "mask=/h/s/tok"); listing(plan) != "mask /h/s/tok\nhide directory /r" {
		t.Error(listing(plan))
	}
}

// TestMaskIsNoWriteRoot_FS58: a list that grants writing to a masked file grants nothing.
func TestMaskIsNoWriteRoot_FS58(t *testing.T) {
	plan, v := built(t, newFakeTree(t, "f /h/p/tok"), "aW=tok mask=tok")
	if len(plan.WriteRoots)+len(plan.Writable) > 0 || v.at("/h/p/tok").writable {
		t.Errorf("write roots %q, %v", plan.WriteRoots, plan.Writable)
	}
	plan, _ = built(t, newFakeTree(t, "f /h/p/tok"), "aW=. aW=tok mask=tok")
	if said := strings.Join(plan.Notes, "\n"); !strings.Contains(said, `filesystem.allowWrite.1 ("tok") is read-only: credentials.files.0.path`) {
		t.Errorf("notes %q", said)
	}
}

// TestMaskHides: what is masked is hidden from those who re-open standard streams.
func TestMaskHides(t *testing.T) {
	plan := &Plan{Steps: []Step{{Kind: Reveal, Path: "/a"}, {Kind: Mask, Path: "/a/tok"}}}
	if !plan.Hides("/a/tok") || plan.Hides("/a/x") {
		t.Error("a mask is not what hides")
	}
}
