package differential

import (
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/test/differential/internal/model"
	"github.com/srt-sandbox/srt/test/programs/stage"
)

// shrink leaves out operations, entries and objects as long as a case still differs, in at most so many runs.
func shrink(who stage.Account, sc scenario, difference string, runs int) (scenario, string) {
	try := func(smaller scenario) bool {
		if runs--; runs < 0 {
			return false
		}
		out, err := run(who, smaller, replay(smaller.Ops))
		if err != nil || out.difference == "" {
			return false
		}
		sc, difference = smaller, out.difference
		sc.Ops = out.ops
		return true
	}
	for again := true; again && runs > 0; {
		again = false
		for _, part := range shrinkers {
			for size := max(1, part.size(sc)/2); size >= 1; size /= 2 {
				for i := part.size(sc) - size; i >= 0; i -= size {
					if i+size <= part.size(sc) && try(part.without(sc, i, size)) {
						again = true
					}
				}
			}
		}
	}
	return sc, difference
}

// shrinker is a part of a case from which a run of elements can be left out.
type shrinker struct {
	size    func(scenario) int
	without func(sc scenario, i, n int) scenario
}

var shrinkers = []shrinker{
	{func(sc scenario) int { return len(sc.Ops) }, func(sc scenario, i, n int) scenario {
		sc.Ops = slices.Delete(slices.Clone(sc.Ops), i, i+n)
		return sc
	}},
	entries(func(p *model.Policy) *[]model.Entry { return &p.DenyRead }),
	entries(func(p *model.Policy) *[]model.Entry { return &p.AllowRead }),
	entries(func(p *model.Policy) *[]model.Entry { return &p.AllowWrite }),
	entries(func(p *model.Policy) *[]model.Entry { return &p.DenyWrite }),
	entries(func(p *model.Policy) *[]model.Entry { return &p.Credential }),
	{func(sc scenario) int { return len(sc.Items) }, withoutItems},
}

func entries(list func(*model.Policy) *[]model.Entry) shrinker {
	return shrinker{func(sc scenario) int { return len(*list(&sc.Policy)) }, func(sc scenario, i, n int) scenario {
		l := list(&sc.Policy)
		*l = slices.Delete(slices.Clone(*l), i, i+n)
		return sc
	}}
}

// withoutItems leaves out objects with all beneath them, but never the home and the working directory.
func withoutItems(sc scenario, i, n int) scenario {
	gone := sc.Items[i : i+n]
	sc.Items = slices.DeleteFunc(slices.Clone(sc.Items), func(it model.Item) bool {
		for _, g := range gone {
			if g.Path == model.Home || g.Path == model.Cwd {
				continue
			}
			if it.Path == g.Path || strings.HasPrefix(it.Path, g.Path+"/") || it.Same == g.Path || (it.Same != "" && strings.HasPrefix(it.Same, g.Path+"/")) {
				return true
			}
		}
		return false
	})
	return sc
}
