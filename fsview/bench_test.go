package fsview

import (
	"fmt"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// BenchmarkBuildDenies plans many deny entries beneath one write root, half of them files to hide.
func BenchmarkBuildDenies(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tree := newFakeTree(b, "d /h/p")
			in := Input{Cwd: "/h/p", UID: 1000}
			in.Rules.AllowWrite = []policy.PathRule{{Key: "aW", Path: "/h/p"}}
			for i := range n {
				p := fmt.Sprintf("/h/p/d%d/e%d/f%d", i%50, i%500, i)
				tree.add(p, 'f')
				list := &in.Rules.DenyWrite
				if i%2 == 0 {
					list = &in.Rules.DenyRead
				}
				*list = append(*list, policy.PathRule{Key: "deny", Entry: p, Path: p})
			}
			shallow := &noSearch{tree}
			for b.Loop() {
				plan, err := Build(shallow, in)
				if err != nil || len(plan.Steps) < n {
					b.Fatal(plan, err)
				}
			}
		})
	}
}

// noSearch shows no names, so that the slow listing of a fakeTree is not what is measured.
type noSearch struct{ *fakeTree }

func (noSearch) ReadDir(string) ([]DirEntry, error) { return nil, nil }
