package runtime

import (
	"errors"
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
//
// What is remembered is an attempt, with what was there before it: whether it has led to something shows at the end, whatever
// became of the call and of the process that made it.
type plantedJudge struct {
	*fsview.Guard
	except []string // directories whose content is the command's own business

	mu      sync.Mutex
	names   map[string]plantedBefore
	refused int  // names that found no room since those that are gone were last dropped
	partial bool // not all that came to be is remembered
}

// plantedBefore is what was at a name before the first attempt to make it.
type plantedBefore struct {
	found  plantedFound
	object fileState
	moved  []string // where the name may be since, as directories around it were renamed
}

type plantedFound uint8

const (
	plantedUnknown plantedFound = iota // it could not be told without waiting
	plantedNothing
	plantedObject
)

// fileState tells an object from another one, and from itself after a change.
type fileState struct {
	dev, ino          uint64
	size              int64
	modified, changed unix.Timespec
}

// maxPlanted bounds what is remembered, maxPlantedMoves of each name, and shownPlanted what is shown.
const (
	maxPlanted      = 1000
	maxPlantedMoves = 16
	shownPlanted    = 10
)

// Suspect is the guard's, and true for every name that is remembered.
func (j *plantedJudge) Suspect(name string) bool { return j.Guard.Suspect(name) || j.Mandatory(name) }

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

// Follows reports whether the judge has to hear of directories that are renamed (broker.Follower).
func (j *plantedJudge) Follows() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.names) > 0
}

// Renames hears of a directory that is about to be renamed: what lies in it has another name then.
func (j *plantedJudge) Renames(from, to string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, before := range j.names {
		for i := -1; i < len(before.moved); i++ {
			p := name
			if i >= 0 {
				p = before.moved[i]
			}
			if p = underNewName(p, from, to); p == "" || p == name || slices.Contains(before.moved, p) {
				continue
			}
			if len(before.moved) >= maxPlantedMoves {
				j.partial = true
				break
			}
			before.moved = append(before.moved, p)
			j.names[name] = before
		}
	}
}

// underNewName is a path in a directory that was renamed, empty if it does not lie in it.
func underNewName(p, from, to string) string {
	if rest, ok := strings.CutPrefix(p, from+"/"); ok {
		return path.Join(to, rest)
	}
	return ""
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
	if _, known := j.names[p]; known {
		return
	}
	if len(j.names) >= maxPlanted && !j.makeRoom() {
		j.partial = true
		return
	}
	found, object := stateOf(p)
	j.names[p] = plantedBefore{found: found, object: object}
}

// makeRoom drops the names that are gone, and tells whether there is room now. It looks at all of them, and so not each time.
func (j *plantedJudge) makeRoom() bool {
	if j.refused++; j.refused > 1 && j.refused < maxPlanted {
		return false
	}
	j.refused = 0
	for p, before := range j.names {
		found, _ := stateOf(p)
		for _, moved := range before.moved {
			if at, _ := stateOf(moved); at != plantedNothing {
				found = at
			}
		}
		if found == plantedNothing {
			delete(j.names, p)
		}
	}
	return len(j.names) < maxPlanted
}

// stateOf is what is at a path, as far as it can be told without waiting for a disk or a server.
func stateOf(p string) (plantedFound, fileState) {
	fd, err := openCached(p)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return plantedNothing, fileState{}
	case err != nil:
		return plantedUnknown, fileState{}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return plantedUnknown, fileState{}
	}
	return plantedObject, fileState{st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim}
}

// came is where a name came to be or was changed; ok is false where it did not, or is gone again.
func (j *plantedJudge) came(p string, before plantedBefore) (at string, ok bool) {
	var st unix.Stat_t
	if unix.Lstat(p, &st) == nil {
		now := fileState{st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim}
		if before.found != plantedObject || now != before.object {
			return p, true
		}
	}
	for _, moved := range before.moved {
		if before.found != plantedObject && unix.Lstat(moved, &st) == nil {
			return moved, true
		}
	}
	return "", false
}

// list are the names that are still there, in the order in which they are shown: of each name one first, then the next.
func (j *plantedJudge) list() []string {
	byName := map[string][]string{}
	for p, before := range j.names {
		if at, ok := j.came(p, before); ok {
			name := strings.ToLower(path.Base(at))
			byName[name] = append(byName[name], at)
		}
	}
	names, total := make([]string, 0, len(byName)), 0
	for name, list := range byName {
		slices.Sort(list)
		byName[name] = slices.Compact(list)
		names, total = append(names, name), total+len(byName[name])
	}
	slices.Sort(names)
	all := make([]string, 0, total)
	for i := 0; len(all) < total; i++ {
		for _, name := range names {
			if i < len(byName[name]) {
				all = append(all, violation.Clean(byName[name][i]))
			}
		}
	}
	return all
}

// line names what is still there, or is empty. all are the names, where not all of them are in the line.
func (j *plantedJudge) line() (line string, all []string) {
	if j == nil {
		return "", nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.list()
	if len(list) == 0 && !j.partial {
		return "", nil
	}
	const what = "the command made or changed files that other programs act upon by themselves"
	if len(list) == 0 {
		return what + ", more than are remembered, and those that are have gone: look for names such as .bashrc, .vscode and .mcp.json " +
			"before you go on (FS-38)", nil
	}
	shown, more := list, ""
	if len(list) > shownPlanted {
		shown, more, all = list[:shownPlanted], fmt.Sprintf(" and %d more (-d lists them)", len(list)-shownPlanted), list
	}
	if j.partial {
		more += "; there were more than are remembered, so this is not all"
	}
	return fmt.Sprintf("%s: %s%s; look at them before you go on (FS-38)", what, strings.Join(shown, ", "), more), all
}
