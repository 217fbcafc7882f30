package fsview_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// many makes n files in 50 directories beneath dir and gives rules that name them.
func many(tb testing.TB, dir string, n int, exist bool) (list []policy.PathRule) {
	tb.Helper()
	for i := range min(n, 50) {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprint("d", i)), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	for i := range n {
		p := filepath.Join(dir, fmt.Sprintf("d%d/f%d", i%50, i))
		if exist {
			if err := os.WriteFile(p, []byte("content\n"), 0o644); err != nil {
				tb.Fatal(err)
			}
		}
		list = append(list, policy.PathRule{Key: "test", Entry: p, Path: p})
	}
	return list
}

// sizes are the plans that must start (FS-65).
var sizes = []struct {
	name  string
	n     int
	exist bool
	put   func(in *fsview.Input, list []policy.PathRule)
}{
	{"masks", 8000, true, func(in *fsview.Input, l []policy.PathRule) { in.Masks = l }},
	{"write denies", 10000, true, func(in *fsview.Input, l []policy.PathRule) { in.Rules.DenyWrite = l }},
	{"read denies", 10000, true, func(in *fsview.Input, l []policy.PathRule) { in.Rules.DenyRead = l }},
	{"absent write denies", 10000, false, func(in *fsview.Input, l []policy.PathRule) { in.Rules.DenyWrite = l }},
	{"absent read denies", 10000, false, func(in *fsview.Input, l []policy.PathRule) { in.Rules.DenyRead = l }},
}

func sizedInput(tb testing.TB, n int, exist bool, put func(*fsview.Input, []policy.PathRule)) fsview.Input {
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	in := fsview.Input{Cwd: dir, UID: os.Geteuid(), FakeContent: func(_ int, p string) ([]byte, error) { return []byte("fake_value_" + p), nil }}
	in.Rules.AllowWrite = absolute(dir)
	put(&in, many(tb, dir, n, exist))
	return in
}

// BenchmarkSizes_FS65 starts a shell under plans of the sizes that must start (FS-65).
func BenchmarkSizes_FS65(b *testing.B) {
	for _, s := range sizes {
		b.Run(strings.ReplaceAll(fmt.Sprint(s.n, " ", s.name), " ", "_"), func(b *testing.B) {
			in := sizedInput(b, s.n, s.exist, s.put)
			for b.Loop() {
				if out := view(b, in, "echo up"); out != "up\n" {
					b.Fatalf("%.300s", out)
				}
			}
		})
	}
}

// TestSizes_FS65 starts with 500 rules of each kind and looks at the last of them.
func TestSizes_FS65(t *testing.T) {
	for _, s := range sizes {
		t.Run(strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) {
			in := sizedInput(t, 500, s.exist, s.put)
			last := filepath.Join(in.Cwd, "d49/f499")
			out := view(t, in, "head -c 11 "+last+"; echo; echo x > "+last+"; test -e "+last+" && echo there")
			want := map[string]string{"masks": "fake_value_", "write denies": "content\n\n", "read denies": "Permission denied"}[s.name]
			if !strings.Contains(out, want) || s.exist && !strings.Contains(out, "there") ||
				s.exist && s.name != "read denies" && !strings.Contains(out, "Read-only") {
				t.Errorf("%.600s", out)
			}
			plan, err := fsview.Build(fsview.Host(), in)
			if err != nil || !s.exist && len(plan.Absent) < 500 {
				t.Errorf("%d rules for absent names, %v", len(plan.Absent), err)
			}
		})
	}
}
