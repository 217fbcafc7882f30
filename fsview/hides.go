package fsview

import "github.com/srt-sandbox/srt/runtime/policy"

// Hides reports whether the content of the object at an absolute path without links is hidden from the command: the
// deepest step that covers the path decides, as it does when the steps are mounted. What a supplied file stands in for is
// not seen, but is no secret: nobody denied it. Hides is safe for concurrent use.
func (pl *Plan) Hides(path string) bool {
	hidden, depth := false, -1
	for _, s := range pl.Steps {
		switch s.Kind {
		case HideDir, HideFile, EmptyDir, Mask, Reveal, RevealWritable, Supplied:
			if len(s.Path) > depth && policy.Covers(s.Path, path) {
				depth = len(s.Path)
				hidden = s.Kind != Reveal && s.Kind != RevealWritable && s.Kind != Supplied
			}
		}
	}
	return hidden
}
