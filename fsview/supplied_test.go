package fsview

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// suppliedInput adds supplied files at some paths to an input.
func suppliedInput(t testing.TB, words, paths string) Input {
	t.Helper()
	in := input(t, words)
	for _, p := range strings.Fields(paths) {
		in.Supplied = append(in.Supplied, SuppliedFile{Path: p, Content: []byte("own " + p)})
	}
	return in
}

// TestSupplied_NET7 plans files of srt's own over those of the host.
func TestSupplied_NET7(t *testing.T) {
	const file, link, gone = "f /etc/rc;", "l /etc/rc ../run/r/stub;f /run/r/stub;", "l /etc/rc ../run/r/stub;d /run;"
	tests := []struct {
		name, tree, rules string
		want              string // steps
		says              string // part of a warning or note
	}{
		{"a file", file, "", "supplied file /etc/rc", ""},
		{"a link", link, "", "supplied file /etc/rc", ""},
		{"an absolute link over two more", "l /etc/rc /v/rc;l /v run;l /run/rc r/stub;f /run/r/stub", "", "supplied file /etc/rc", ""},
		{"a dangling link", gone, "", "supplied file /etc/rc", ""},
		{"a link to itself", "l /etc/rc rc", "", "supplied file /etc/rc", ""},
		{"a link to a directory", "l /etc/rc r;d /etc/r", "", "supplied file /etc/rc", ""},
		{"a link into /proc", "l /etc/rc ../proc/net/pnp", "", "supplied file /etc/rc", ""},
		{"FS-11 a link to what cannot be inspected", "l /etc/rc r/x;d /etc/r eio", "", "supplied file /etc/rc", ""},
		{"a FIFO", "p /etc/rc", "", "supplied file /etc/rc", ""},
		{"the directory is reached through a link", "l /etc usr/e;f /usr/e/rc", "", "supplied file /usr/e/rc", ""},
		{"absent", "d /etc", "", "", `"/etc/rc" does not exist, so nothing shows there`},
		{"absent with its directory", "d /x", "", "", `"/etc/rc" does not exist`},
		{"a directory", "d /etc/rc", "", "", `"/etc/rc" is a directory`},
		{"FS-11 not inspectable", "d /etc eio", "", "", `cannot be inspected`},

		{"a write root around it", file, "aW=/etc", "writable /etc; supplied file /etc/rc", ""},
		{"a write root further around it", "f /s/etc/rc;l /etc s/etc", "aW=/s", "pin /s/etc; writable /s; supplied file /s/etc/rc", ""},
		{"a write root around a link", link, "aW=/etc", "writable /etc; supplied file /etc/rc", ""},
		{"a write root around the link to the directory", "f /s/e/rc;l /s/etc e;l /etc s/etc", "aW=/s", "pin /s/e; pin /s/etc; writable /s; supplied file /s/e/rc", ""},
		{"a write root around a dangling link", gone, "aW=/etc", "writable /etc; supplied file /etc/rc", ""},
		{"a write root around the target", link, "aW=/run", "supplied file /etc/rc; writable /run", ""},
		{"a write root of it", file, "aW=/etc/rc", "supplied file /etc/rc", `filesystem.allowWrite.0 ("/etc/rc") grants nothing: the command sees a file of the sandbox's own`},
		{"FS-8 a write root of a link", link, "aW=/etc/rc", "supplied file /etc/rc", "leads through a link"},
		{"no write limits", file, "root aW=/ home= cwd=/proc", "writable /etc; supplied file /etc/rc", ""},
		{"no write limits and links", "l /etc usr/e;l /usr/e/rc x", "root aW=/ home= cwd=/proc", "pin /usr/e; pin /etc; writable /usr; supplied file /usr/e/rc", ""},
		{"FS-56 disabled", file, "disabled", "writable /etc; supplied file /etc/rc", ""},
		{"FS-56 disabled, with a mask elsewhere", file + "f /k", "disabled mask=/k", "writable /etc; supplied file /etc/rc; mask /k", ""},

		{"FS-26 a write deny", file, "aW=/etc dW=/etc/rc", "writable /etc; supplied file /etc/rc", ""},
		{"FS-42 a write deny of a link", link, "aW=/etc dW=/etc/rc", "writable /etc; supplied file /etc/rc", ""},
		{"FS-26 a write deny around it", file, "aW=/etc dW=/etc", "supplied file /etc/rc", ""},
		{"FS-22 a read deny", file, "dR=/etc/rc", "hide file /etc/rc", `"/etc/rc" is hidden by filesystem.denyRead.0 ("/etc/rc")`},
		{"FS-22 a read deny of a link", link, "dR=/etc/rc", "hide file /run/r/stub", "is hidden by"},
		{"FS-22 a read deny of the target's directory", link, "dR=/run/r", "hide directory /run/r", "is hidden by"},
		{"FS-10 a read deny of a dangling link", gone, "dR=/etc/rc", "", "must not be read once it is there"},
		{"FS-10 a read deny of the missing directory", gone, "dR=/run/r", "", "must not be read once it is there"},
		{"FS-55 a read deny of the missing by pattern", gone, "dR=/run/*/s*", "", "must not be read once it is there"},
		{"FS-55 a read deny around the missing by pattern", gone, "dR=/run/?", "", "must not be read once it is there"},
		{"FS-55 a read deny of a dangling link by pattern", gone, "dR=/etc/r*", "", "must not be read once it is there"},
		{"FS-10 a read deny of something else that is missing", gone, "dR=/run/x dR=/run/y/*", "supplied file /etc/rc", ""},
		{"FS-22 a read deny by pattern", file, "dR=/etc/r*", "hide file /etc/rc", "is hidden by"},
		{"FS-57 a credential", file, "cred=/etc/rc aR=/etc/rc", "hide file /etc/rc", "is hidden by credentials.files.0.path"},
		{"FS-22 in a hidden directory", file, "dR=/etc", "hide directory /etc", "is hidden by"},
		{"FS-22 a link in a hidden directory", link, "dR=/etc", "hide directory /etc", "is hidden by"},
		{"FS-22 everything is hidden", file, "dR=/ home= cwd=/w", "hide directory /etc; hide directory /h; hide directory /w", "is hidden by"},
		{"FS-22 re-allowed by itself", file, "dR=/etc aR=/etc/rc", "hide directory /etc; supplied file /etc/rc make rc", ""},
		{"FS-22 re-allowed for writing", file, "dR=/etc aW=/etc/rc", "hide directory /etc; supplied file /etc/rc make rc", "grants nothing"},
		{"FS-22 re-allowed with its directory", "f /s/etc/rc;l /etc s/etc", "dR=/s aR=/s/etc", "hide directory /s; reveal /s/etc make etc; supplied file /s/etc/rc", ""},
		{"FS-22 a link whose target is hidden with it", "l /etc/rc d/x;f /etc/d/x", "dR=/etc aR=/etc/rc", "hide directory /etc; supplied file /etc/rc make rc", ""},
		{"FS-22 a re-allowed link out of the hidden directory", link, "dR=/etc aR=/etc/rc", "hide directory /etc", "is hidden by"},
		{"FS-22 a link that needs no re-allowing, whose target is hidden", link, "dR=/run aR=/etc/rc", "hide directory /run", "is hidden by"},
		{"FS-22 a link and its target re-allowed", "l /etc/rc d/x;f /etc/d/x", "dR=/etc aR=/etc/rc aR=/etc/d",
			"hide directory /etc; reveal /etc/d make d; supplied file /etc/rc make rc", ""},
		{"FS-58 a mask", file, "mask=/etc/rc", "mask /etc/rc", `"/etc/rc" is masked by credentials.files.0.path ("/etc/rc"), which stays`},
		{"FS-58 a mask of the target", link, "mask=/etc/rc", "mask /run/r/stub", "is masked by"},
		{"FS-24 beside the empty directory", file + "d /etc/ssh/ssh_config.d", "ssh", "supplied file /etc/rc; empty directory /etc/ssh/ssh_config.d", ""},

		{"a mount of the host", "f /c/rc;f /etc/rc;m /etc/rc /c/rc", "aW=/etc", "writable /etc; supplied file /etc/rc", ""},
		{"a second path stays the host's", "f /etc/rc;d /m/e;m /m/e /etc", "aW=/m", "supplied file /etc/rc; writable /m", ""},
		{"FS-7 hidden at a second path", "f /etc/rc;d /m/e;m /m/e /etc", "dR=/m/e/rc", "hide file /etc/rc; hide file /m/e/rc", "is hidden by"},
		{"FS-45 hard links are no matter", "f /etc/rc links=2", "", "supplied file /etc/rc", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := newFakeTree(t, "d /h/p;d /w;"+tt.tree)
			in := suppliedInput(t, tt.rules, "/etc/rc")
			tree.uid, in.Mounts = in.UID, tree.mounts
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
			said := strings.Join(append(plan.Warnings, plan.Notes...), "\n")
			if !strings.Contains(said, tt.says) || tt.says == "" && strings.Contains(said, "own") {
				t.Errorf("%q does not say %q", said, tt.says)
			}
			for _, s := range plan.Steps {
				if s.Kind == Supplied && (string(s.Content) != "own /etc/rc" || s.Why != "the sandbox's own resolver (NET-7)") {
					t.Errorf("%q, %s", s.Content, s.Why)
				}
			}
		})
	}
}

// TestSuppliedKernelTrees_FS47: in /proc, /dev and /sys nothing is supplied.
func TestSuppliedKernelTrees_FS47(t *testing.T) {
	in := suppliedInput(t, "", "/proc/f /dev/f /sys/f")
	plan, err := Build(newFakeTree(t, "d /h/p;f /proc/f;f /dev/f;f /sys/f"), in)
	if err != nil || len(plan.Steps) != 0 || len(plan.Notes) != 3 {
		t.Errorf("%+v, %v", plan, err)
	}
}

// TestSuppliedFirstWins: of two files at one name, also by two spellings, the first counts.
func TestSuppliedFirstWins(t *testing.T) {
	in := suppliedInput(t, "", "/etc/rc /e/rc")
	plan, err := Build(newFakeTree(t, "d /h/p;f /etc/rc;l /e etc"), in)
	if err != nil || len(plan.Steps) != 1 || string(plan.Steps[0].Content) != "own /etc/rc" {
		t.Errorf("%+v, %v", plan, err)
	}
}

// TestSuppliedIsNoSecret: a stream that was opened on what a supplied file stands in for is not one on hidden content.
func TestSuppliedIsNoSecret(t *testing.T) {
	plan := &Plan{Steps: []Step{{Kind: HideDir, Path: "/etc"}, {Kind: Supplied, Path: "/etc/rc"}}}
	if plan.Hides("/etc/rc") || !plan.Hides("/etc/x") {
		t.Error("what is hidden is not what the steps say")
	}
}

// TestSuppliedSize_FS65: supplied files count as the mounts that they are.
func TestSuppliedSize_FS65(t *testing.T) {
	in := suppliedInput(t, "", "/etc/a /etc/b")
	for limit, fits := range map[int]bool{1: false, 2: true} {
		in.MountMax = limit
		if _, err := Build(newFakeTree(t, "d /h/p;f /etc/a;f /etc/b"), in); (err == nil) != fits {
			t.Errorf("with room for %d: %v", limit, err)
		}
	}
}

// TestSuppliedChangesNothingElse: in random scenes, whatever is not a supplied file is seen as without any, and no
// supplied file shows anything that is hidden or masked.
func TestSuppliedChangesNothingElse(t *testing.T) {
	shown, series, data := 0, rand.NewChaCha8([32]byte{'s', 'u', 1}), make([]byte, 200)
	for seed := range 2000 {
		series.Read(data)
		tree, in := scene(t, data)
		before, err := Build(tree, in)
		if err != nil {
			t.Fatal(err)
		}
		paths := tree.paths()
		for i := range 3 {
			in.Supplied = append(in.Supplied, SuppliedFile{Path: paths[(seed*7+i*5)%len(paths)], Content: []byte("supplied")})
		}
		after, err := Build(tree, in)
		if err != nil {
			t.Fatalf("%v\n%s", err, describe(tree, in))
		}
		if err := sameButSupplied(tree, before, after, &shown); err != nil {
			t.Fatalf("%v\n%s\nsupplied %v\nbefore:\n%s\nafter:\n%s", err, describe(tree, in), in.Supplied, listing(before), listing(after))
		}
	}
	if shown < 200 {
		t.Errorf("%d supplied files in all: the generator makes too little", shown)
	}
}

func sameButSupplied(tree *fakeTree, before, after *Plan, shown *int) error {
	v, err := apply(tree, before)
	if err != nil {
		return err
	}
	w, err := apply(tree, after)
	if err == nil {
		err = w.checkPinned()
	}
	if err != nil {
		return err
	}
	for _, p := range tree.paths() {
		was, is := v.at(p), w.at(p)
		if m, ok := w.mounts[p]; ok && m.Kind == Supplied {
			*shown++
			if was.kind != onHost || was.dir || is.fake != "supplied" || is.writable {
				return fmt.Errorf("%s was %+v and is %+v", p, was, is)
			}
			continue
		}
		was.mount, is.mount = "", "" // the same may be shown by a clone of its own (FS-41)
		if was != is {
			return fmt.Errorf("%s was %+v and is %+v", p, was, is)
		}
	}
	return nil
}
