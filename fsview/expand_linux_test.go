package fsview

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// realTree makes files, directories (a name that ends in a slash) and links ("name -> target") in a fresh directory.
func realTree(t testing.TB, names ...string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		name, target, isLink := strings.Cut(name, " -> ")
		p := root + "/" + name
		err := os.MkdirAll(filepath.Dir(strings.TrimSuffix(p, "/")), 0o755)
		switch {
		case isLink:
			err = errors.Join(err, os.Symlink(target, p))
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.Mkdir(p, 0o755))
		default:
			err = errors.Join(err, os.WriteFile(p, nil, 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// hiddenIn builds a plan on the disk and lists what it hides beneath root.
func hiddenIn(t testing.TB, root, rules string) []string {
	t.Helper()
	in := input(t, "cwd="+root+"/p home="+root+" "+rules)
	in.UID = os.Getuid()
	plan, err := Build(Host(), in)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, s := range plan.Steps {
		if s.Kind == HideFile || s.Kind == HideDir {
			list = append(list, strings.TrimPrefix(s.Path, root+"/"))
		}
	}
	return list
}

func TestPatternsOnHost(t *testing.T) {
	root := realTree(t, "p/a.pem", "p/a/k.pem", "p/a/\xff\xfe.pem", "p/a/line\nfeed.pem", "ext/k.pem", "p/ext -> ../ext", "p/x*y/", "p/xay/",
		"p/up -> ..", "p/gone.pem -> none", "p/t[user-id]/", "q.pem")
	for rules, want := range map[string][]string{
		"dR=**/*.pem":               {"ext/k.pem", "p/a.pem", "p/a/k.pem", "p/a/line\nfeed.pem", "p/a/\xff\xfe.pem"}, // FS-13, FS-18, case 14
		"dR=*.pem":                  {"p/a.pem"},                                                                     // FS-12, case 14
		"dR=x*y":                    {"p/x*y", "p/xay"},                                                              // FS-16, case 15
		"dR=t[user-id]":             {"p/t[user-id]"},                                                                // FS-14, case 16
		"dR=a/??.pem":               {"p/a/\xff\xfe.pem"},                                                            // FS-13
		"cred=~/*.pem":              {"q.pem"},                                                                       // FS-57
		"dR=" + root + "/*/k.pe[m]": {"ext/k.pem"},
	} {
		got := hiddenIn(t, root, rules)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s hides %q, want %q", rules, got, want)
		}
	}
}

// TestUnreadableOnHost_FS19: a directory that cannot be listed is hidden whole. Root lists everything.
func TestUnreadableOnHost_FS19(t *testing.T) {
	root := realTree(t, "p/l/k.pem", "p/o/k.pem")
	if err := os.Chmod(root+"/p/l", 0o311); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(root+"/p/l", 0o755) })
	want, allowed := []string{"p/l", "p/o/k.pem"}, []string{"p/l", "p/o/k.pem"}
	if unix.Geteuid() == 0 {
		want, allowed = []string{"p/l/k.pem", "p/o/k.pem"}, []string{"p/o/k.pem"}
	}
	if got := hiddenIn(t, root, "dR=**/*.pem"); !slices.Equal(got, want) {
		t.Errorf("hides %q, want %q", got, want)
	}
	if got := hiddenIn(t, root, "dR=**/*.pem aR=l/k.pem"); !slices.Equal(got, allowed) {
		t.Errorf("with an allow beneath it hides %q, want %q", got, allowed)
	}
}

// TestManyOnHost_FS65 case 36: 3,500 files that match.
func TestManyOnHost_FS65(t *testing.T) {
	var names []string
	for i := range 3500 {
		names = append(names, fmt.Sprintf("p/d%d/%d.key", i%30, i))
	}
	root := realTree(t, append(names, "p/d0/other")...)
	if got := hiddenIn(t, root, "dR=**/*.key"); len(got) != 3500 {
		t.Errorf("%d files are hidden", len(got))
	}
}

// BenchmarkExpandLarge walks a tree of 100,000 files in 5,000 directories, in which one file matches.
func BenchmarkExpandLarge(b *testing.B) {
	root := b.TempDir()
	for i := range 5000 {
		dir := fmt.Sprintf("%s/p/a%d/b%d/c%d", root, i%10, i%100, i)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 20 {
			if err := os.WriteFile(fmt.Sprintf("%s/source-file-%d.go", dir, j), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, rules := range []string{"dR=**/*.pem", "dR=*.pem", "dR=**/*.pem dR=**/*.key dR=**/.env dR=**/id_rsa* dW=**/*.lock aW=."} {
		in := input(b, "cwd="+root+"/p home=/nowhere "+rules)
		b.Run(rules, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := BuildWithin(Host(), in, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
