package fsview_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
)

// BenchmarkConfine holds a plan with one hidden directory without mounts: the listing of what is beside it, and the program.
func BenchmarkConfine(b *testing.B) {
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for _, d := range []string{"hidden", "w"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	in := fsview.Input{Cwd: dir, Home: dir, UID: os.Geteuid()}
	in.Rules.DenyRead, in.Rules.AllowWrite = rules(dir, "hidden"), rules(dir, "w")
	plan, err := fsview.Build(fsview.Host(), in)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c, err := fsview.Confine(plan, fsview.ConfineInput{Tree: fsview.Host(), UID: in.UID})
		if err != nil {
			b.Fatal(err)
		}
		p, err := ns.NewProgram()
		if err != nil {
			b.Fatal(err)
		}
		c.CompileLandlock(p, fsview.CompileOptions{LandlockABI: fsview.ScopeABI})
		b.ReportMetric(float64(len(c.ReadRules())), "rules")
		if err := p.Release(); err != nil {
			b.Fatal(err)
		}
	}
}
