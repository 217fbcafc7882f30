package fsview

import (
	"path"
	"slices"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// The statement of FS-58 and CRED-9: a masked file shows its fake under every name, a masked directory is hidden.

func (s *statement) placeMasks(in Input) {
	for _, r := range in.Masks {
		loc, links, ok := s.tree.real(r.Path)
		s.held = append(s.held, links...)
		switch {
		case !ok:
		case s.tree.objects[loc].kind == 'f':
			s.masks = append(s.masks, loc)
		case loc == "/":
			s.credential = append(s.credential, s.aboveLast(links))
		default:
			s.credential = append(s.credential, loc)
		}
	}
}

// aboveLast is the directory that holds the last of the links, or the root.
func (s *statement) aboveLast(links []string) string {
	if len(links) == 0 {
		return "/"
	}
	return path.Dir(links[len(links)-1])
}

// fakesAt are the fakes of which one shows at p: that of its own name, or of the others that the object has.
func (s *statement) fakesAt(p string) (list []string) {
	if slices.Contains(s.masks, p) {
		return []string{"fake of " + p}
	}
	for _, m := range s.masks {
		if s.shownAgain(p, []string{m}) {
			list = append(list, "fake of "+m)
		}
	}
	return list
}

// maskRules makes mask rules of texts.
func maskRules(paths ...string) (list []policy.PathRule) {
	for _, p := range paths {
		list = append(list, policy.PathRule{Key: "credentials.files.0.path", Entry: p, Path: p})
	}
	return list
}
