package runtime

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// plantedJudge is the guard of a command, and remembers which names it makes that other programs act upon by themselves
// (FS-35), in places where nothing denies them: the mandatory denies hold for what exists, and so does a repository that
// the command clones with its editor settings. The person is told when the command has ended.
type plantedJudge struct {
	*fsview.Guard
	except []string // directories whose content is the command's own business

	mu    sync.Mutex
	names map[string]struct{}
}

// maxPlanted bounds what is remembered, shownPlanted what is shown.
const (
	maxPlanted   = 1000
	shownPlanted = 5
)

// Create judges as the guard does.
func (j *plantedJudge) Create(dir fsview.Identity, at func() (string, error), name string) (string, bool, error) {
	why, denied, err := j.Guard.Create(dir, at, name)
	if err != nil || denied || !j.Mandatory(name) {
		return why, denied, err
	}
	location, err := at()
	if err != nil {
		return "", false, err
	}
	j.remember(path.Join(location, name))
	return "", false, nil
}

// remember notes one name. What packages bring is theirs, and no search looks there (FS-38).
func (j *plantedJudge) remember(p string) {
	for _, dir := range j.except {
		if policy.Covers(dir, p) {
			return
		}
	}
	if slices.Contains(strings.Split(p, "/"), "node_modules") {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.names) < maxPlanted {
		j.names[p] = struct{}{}
	}
}

// line names what is still there, or is empty.
func (j *plantedJudge) line() string {
	if j == nil {
		return ""
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []string
	for p := range j.names {
		var st unix.Stat_t
		if unix.Lstat(p, &st) == nil {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	more := ""
	if n := len(list) - shownPlanted; n > 0 {
		list, more = list[:shownPlanted], fmt.Sprintf(" and %d more", n)
	}
	for i, p := range list {
		list[i] = violation.Clean(p)
	}
	return fmt.Sprintf("the command made or changed files that other programs act upon by themselves: %s%s; look at them before you go on "+
		"(FS-38)", strings.Join(list, ", "), more)
}
