package placeholder

import (
	"strings"
	"time"
)

// The modes of placeholders. The unfinished ones have the sticky bit, which tells an object whose mark is not set yet
// from any other empty one, and are writable by the owner, without which the mark cannot be set (xattr(7)).
const (
	fileMode       = 0o444
	dirMode        = 0o555
	sticky         = 0o1000
	setgid         = 0o2000 // inherited by directories
	unfinishedFile = sticky | 0o644
	unfinishedDir  = sticky | 0o755
)

// observed is what is found at a name.
type observed struct {
	id                      fileID
	dir, regular            bool
	mode, uid, nlink        uint32
	size                    uint64
	mark                    string // "" for none
	content                 string // of a file of at most maxText bytes
	born, modified, changed int64  // as in evidence
}

// looks reports that o could be some srt's placeholder. It is decided from what every object shows; the mark and the
// journal decide in the end.
func (o *observed) looks() bool {
	switch {
	case o.regular:
		return o.size <= maxText && (o.mode == fileMode || o.mode&sticky != 0)
	case o.dir:
		return o.mode == dirMode || (o.mode&sticky != 0 && o.mode&^(unfinishedDir|setgid) == 0)
	default:
		return false
	}
}

// text is the content of a file, by its name: nothing, but where an empty file has a meaning (FS-53). Where a repository has a commondir git takes it
// at its word, and fails when it is empty (gitrepository-layout(5)); "." is what git assumes without one.
func text(name string) string {
	if name == "commondir" {
		return ".\n"
	}
	return ""
}

// maxText is the longest text.
const maxText = 2

// text is what the file holds.
func (r *record) text() string {
	if r.dir {
		return ""
	}
	return text(r.name)
}

// place says under which of its two names an object was found.
type place uint8

const (
	atName place = iota
	aside        // moved there to be unlinked: its ctime is the rename's
)

// clockSkew bounds how much earlier than the record a file system may date the object made after it: kernels date files
// by a coarse clock, servers by their own.
const clockSkew = time.Minute

// proves reports that o is the object that r records, unchanged. Whether a directory is empty is not judged here.
//
// sameBoot says that r was written in this boot, so that device numbers mean what they meant.
func (r *record) proves(o *observed, sameBoot bool, at place) bool {
	switch {
	case o.dir != r.dir || o.regular == r.dir:
		return false
	case !r.dir && (o.nlink != 1 || uint64(len(o.content)) != o.size || !strings.HasPrefix(r.text(), o.content)):
		return false // a process may have died before it had written the text
	case r.made == nil:
		return r.provesUnrecorded(o)
	}
	m := r.made
	switch {
	case m.marked != (o.mark == r.mark):
		return false
	case m.id.ino != o.id.ino, sameBoot && m.id.dev != o.id.dev, m.uid != o.uid:
		return false
	case o.mode != m.mode && o.mode != r.finalMode():
		return false
	case m.born != 0 && m.born != o.born:
		return false
	case r.dir:
		// What comes and goes in a directory changes its times; it is empty again, or rmdir refuses.
		return m.marked || m.born != 0 || sameBoot
	case m.modified != o.modified, at == atName && m.changed != 0 && m.changed != o.changed:
		return false
	}
	return m.marked || m.born != 0 || (sameBoot && m.changed != 0)
}

// provesUnrecorded is proves for a record whose made line was never written, or is lost: srt or the machine died before.
func (r *record) provesUnrecorded(o *observed) bool {
	if o.mark != "" {
		return o.mark == r.mark && (o.mode == r.finalMode() || o.mode&sticky != 0)
	}
	unfinished := uint32(unfinishedFile)
	if r.dir {
		unfinished = unfinishedDir | setgid
	}
	// A umask may have taken bits away.
	return o.mode&sticky != 0 && o.mode&^unfinished == 0 && o.uid == r.uid &&
		(o.born == 0 || o.born >= r.time-int64(clockSkew))
}

func (r *record) finalMode() uint32 {
	if r.dir {
		return dirMode
	}
	return fileMode
}
