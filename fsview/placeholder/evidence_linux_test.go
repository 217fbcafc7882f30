package placeholder

import (
	"strings"
	"testing"
	"time"
)

// What proves that an object is the recorded one, and each single difference that disproves it (FS-54).
func TestFS54_Proof(t *testing.T) {
	mark := strings.Repeat("ab", markLen/2)
	file := func() (*record, *observed) {
		r := &record{mark: mark, uid: 5, time: int64(time.Hour), made: &evidence{id: fileID{1, 2}, mode: fileMode, uid: 5,
			marked: true, born: 10, modified: 11, changed: 12}}
		return r, &observed{id: fileID{1, 2}, regular: true, mode: fileMode, uid: 5, nlink: 1, mark: mark, born: 10,
			modified: 11, changed: 12}
	}
	dir := func() (*record, *observed) {
		r, o := file()
		r.dir, r.made.mode = true, dirMode
		o.dir, o.regular, o.mode, o.size, o.nlink = true, false, dirMode, 4096, 2
		return r, o
	}
	unmarked := func(base func() (*record, *observed)) func() (*record, *observed) {
		return func() (*record, *observed) {
			r, o := base()
			r.made.marked, o.mark = false, ""
			return r, o
		}
	}
	unborn := func(base func() (*record, *observed)) func() (*record, *observed) {
		return func() (*record, *observed) {
			r, o := base()
			r.made.born, o.born = 0, 0
			return r, o
		}
	}
	unrecorded := func(base func() (*record, *observed)) func() (*record, *observed) {
		return func() (*record, *observed) {
			r, o := base()
			r.made, o.born = nil, r.time
			return r, o
		}
	}
	type edit = func(*record, *observed)
	none := func(*record, *observed) {}
	text := func(r *record, o *observed) { r.name, o.size, o.content = "commondir", 2, ".\n" }
	unfinished := func(_ *record, o *observed) { o.mark, o.mode = "", sticky|0o600 }
	tests := []struct {
		name     string
		base     func() (*record, *observed)
		edit     edit
		thisBoot bool
		at       place
		want     bool
	}{
		{"file", file, none, true, atName, true},
		{"file after another boot with another device number", file, func(_ *record, o *observed) { o.id.dev = 9 }, false, atName, true},
		{"file moved aside", file, func(_ *record, o *observed) { o.changed = 99 }, true, aside, true},
		{"directory whose entries came and went", dir, func(_ *record, o *observed) { o.modified, o.changed = 98, 99 }, true, atName, true},
		{"directory without a mark", unmarked(dir), none, false, atName, true},
		{"directory without mark and birth time, this boot", unmarked(unborn(dir)), none, true, atName, true},
		{"file without a mark", unmarked(file), none, false, atName, true},
		{"file without mark and birth time, this boot", unmarked(unborn(file)), none, true, atName, true},
		{"file described before its mode was set", unmarked(file), func(r *record, _ *observed) {
			r.made.mode, r.made.changed = unfinishedFile, 0
		}, true, atName, true},

		{"directory without mark and birth time, another boot", unmarked(unborn(dir)), none, false, atName, false},
		{"file without mark and birth time, another boot", unmarked(unborn(file)), none, false, atName, false},
		{"another device", file, func(_ *record, o *observed) { o.id.dev = 9 }, true, atName, false},
		{"another inode", file, func(_ *record, o *observed) { o.id.ino = 9 }, true, atName, false},
		{"another birth of the same inode", unmarked(file), func(_ *record, o *observed) { o.born = 9 }, true, atName, false},
		{"a text", file, text, true, atName, true},
		{"a text that is not written yet", unrecorded(file), func(r *record, _ *observed) { r.name = "commondir" }, true, atName, true},
		{"half a text", unrecorded(file), func(r *record, o *observed) {
			text(r, o)
			o.size, o.content = 1, "."
		}, true, atName, true},
		{"another text", file, func(r *record, o *observed) {
			text(r, o)
			o.content = "/\n"
		}, true, atName, false},
		{"a text that goes on", file, func(r *record, o *observed) {
			text(r, o)
			o.size = 3
		}, true, atName, false},
		{"content", file, func(_ *record, o *observed) { o.size, o.content = 1, "x" }, true, atName, false},
		{"content that cannot be read", file, func(_ *record, o *observed) { o.size = 1 }, true, atName, false},
		{"written and emptied again", file, func(_ *record, o *observed) { o.modified = 9 }, true, atName, false},
		{"changed in any way", file, func(_ *record, o *observed) { o.changed = 9 }, true, atName, false},
		{"made writable", file, func(_ *record, o *observed) { o.mode = 0o644 }, true, atName, false},
		{"directory made writable", dir, func(_ *record, o *observed) { o.mode = 0o755 }, true, atName, false},
		{"given away", file, func(_ *record, o *observed) { o.uid = 6 }, true, atName, false},
		{"hard-linked", file, func(_ *record, o *observed) { o.nlink = 2 }, true, atName, false},
		{"mark taken off", file, func(_ *record, o *observed) { o.mark = "" }, true, atName, false},
		{"another mark", file, func(_ *record, o *observed) { o.mark = strings.Repeat("cd", markLen/2) }, true, atName, false},
		{"a directory in place of the file", file, func(_ *record, o *observed) { o.dir, o.regular = true, false }, true, atName, false},
		{"a link in place of the directory", dir, func(_ *record, o *observed) { o.dir = false }, true, atName, false},

		{"unrecorded, marked", unrecorded(file), none, false, atName, true},
		{"unrecorded directory, marked", unrecorded(dir), none, false, atName, true},
		{"unrecorded, unfinished", unrecorded(file), unfinished, false, atName, true},
		{"unrecorded directory, unfinished, set-group-ID", unrecorded(dir), func(_ *record, o *observed) {
			o.mark, o.mode = "", unfinishedDir|setgid
		}, false, atName, true},
		{"unrecorded, an ordinary empty file", unrecorded(file), func(_ *record, o *observed) { o.mark, o.mode = "", 0o644 }, true, atName, false},
		{"unrecorded, an ordinary read-only file", unrecorded(file), func(_ *record, o *observed) { o.mark = "" }, true, atName, false},
		{"unrecorded, a directory for everybody", unrecorded(dir), func(_ *record, o *observed) { o.mark, o.mode = "", 0o1777 }, true, atName, false},
		{"unrecorded, unfinished, another user's", unrecorded(file), func(r *record, o *observed) {
			unfinished(r, o)
			o.uid = 6
		}, true, atName, false},
		{"unrecorded, unfinished, older than the record", unrecorded(file), func(r *record, o *observed) {
			unfinished(r, o)
			o.born = r.time - 2*int64(clockSkew)
		}, true, atName, false},
		{"unrecorded, another mark", unrecorded(file), func(_ *record, o *observed) { o.mark = strings.Repeat("cd", markLen/2) }, true, atName, false},
		{"unrecorded, marked, made writable", unrecorded(file), func(_ *record, o *observed) { o.mode = 0o600 }, true, atName, false},
		{"unrecorded, marked, with content", unrecorded(file), func(_ *record, o *observed) { o.size = 1 }, true, atName, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, o := tt.base()
			tt.edit(r, o)
			if got := r.proves(o, tt.thisBoot, tt.at); got != tt.want {
				t.Errorf("proves = %v; %+v %+v", got, r.made, o)
			}
		})
	}
}
