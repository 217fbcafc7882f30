package placeholder

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"path"
	"strconv"
	"strings"
)

// fileID says which object, within one boot: after another some file systems have another device number.
type fileID struct{ dev, ino uint64 }

// evidence is what a placeholder was when it was finished. Times are nanoseconds since 1970, 0 where the file system
// has none or they are not known yet.
type evidence struct {
	id                      fileID
	mode, uid               uint32 // mode without the type
	marked                  bool   // the object carries the record's mark
	born, modified, changed int64
}

// record is one placeholder in the journal.
type record struct {
	id     uint64 // its number: the byte of the lock file
	dir    bool
	parent fileID
	where  string // the directory it lies in, absolute
	name   string
	boot   string // the boot in which it was made, or "-"
	time   int64  // when it was recorded, nanoseconds since 1970
	uid    uint32
	mark   string // hexadecimal
	made   *evidence
	lost   bool // not in the journal: something else lies at the name
}

// path is where the placeholder lies, absolute.
func (r *record) path() string { return path.Join(r.where, r.name) }

// aside is the name in the same directory under which the placeholder is unlinked.
func (r *record) aside() string { return ".srt-" + r.mark }

// maxID bounds the numbers of records: they are offsets in a file. Number 0 is the lock of the journal itself.
const maxID = 1 << 62

const markLen = 32 // hexadecimal digits

var errLine = errors.New("not a line of the journal")

// line is one line of the journal: a checksum, the text, a newline. A power cut may tear or blank any of the last lines.
func line(text string) string {
	return fmt.Sprintf("%08x %s\n", crc32.ChecksumIEEE([]byte(text)), text)
}

// makeLine says that the placeholder is about to be made.
func (r *record) makeLine() string {
	return line(fmt.Sprintf("make %d %d %d %d %s %d %d %s %s %s", r.id, digit(r.dir), r.parent.dev, r.parent.ino, r.boot,
		r.time, r.uid, r.mark, strconv.QuoteToASCII(r.where), strconv.QuoteToASCII(r.name)))
}

// madeLine says what was made.
func (r *record) madeLine() string {
	e := r.made
	return line(fmt.Sprintf("made %d %d %d %d %d %d %d %d %d", r.id, e.id.dev, e.id.ino, e.mode, e.uid, digit(e.marked),
		e.born, e.modified, e.changed))
}

// dropLine says that the placeholder is gone or is none any more.
func (r *record) dropLine() string { return line(fmt.Sprintf("drop %d", r.id)) }

func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// contents is a journal as read.
type contents struct {
	list []*record          // all in the order of their making
	byID map[uint64]*record // the live ones
	// lines counts the non-empty ones, bad those of them that could not be read.
	lines, bad int
	torn       bool // the last line has no end
}

// parse reads a journal. Lines that it cannot read are counted and left out.
func parse(data []byte) *contents {
	c := &contents{byID: map[uint64]*record{}, torn: len(data) > 0 && data[len(data)-1] != '\n'}
	for len(data) > 0 {
		text, rest, _ := bytes.Cut(data, []byte{'\n'})
		data = rest
		if len(text) == 0 {
			continue
		}
		c.lines++
		if err := c.apply(string(text)); err != nil {
			c.bad++
		}
	}
	return c
}

// live are the records that are not dropped, in the order of their making.
func (c *contents) live() []*record {
	list := make([]*record, 0, len(c.byID))
	for _, r := range c.list {
		if c.byID[r.id] == r {
			list = append(list, r)
		}
	}
	return list
}

func (c *contents) apply(text string) error {
	sum, text, ok := strings.Cut(text, " ")
	if !ok || fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) != sum {
		return errLine
	}
	f := fields{rest: text}
	switch f.word() {
	case "make":
		r, err := f.make()
		if err != nil || c.byID[r.id] != nil {
			return errLine
		}
		c.byID[r.id] = r
		c.list = append(c.list, r)
	case "made":
		id, e, err := f.made()
		if err != nil || c.byID[id] == nil {
			return errLine
		}
		c.byID[id].made = e
	case "drop":
		id := f.number(maxID)
		if f.bad || f.rest != "" || c.byID[id] == nil {
			return errLine
		}
		delete(c.byID, id)
	default:
		return errLine
	}
	return nil
}

// fields reads the words of a line from left to right. After the first that is wrong all are.
type fields struct {
	rest string
	bad  bool
}

func (f *fields) word() string {
	word, rest, _ := strings.Cut(f.rest, " ")
	f.rest = rest
	f.bad = f.bad || word == ""
	return word
}

// number is a decimal number below limit, 0 standing for no limit.
func (f *fields) number(limit uint64) uint64 {
	n, err := strconv.ParseUint(f.word(), 10, 64)
	f.bad = f.bad || err != nil || (limit != 0 && n >= limit)
	return n
}

func (f *fields) time() int64 {
	n, err := strconv.ParseInt(f.word(), 10, 64)
	f.bad = f.bad || err != nil
	return n
}

// quoted is a string as Go quotes it: paths are bytes, blanks and newlines among them.
func (f *fields) quoted() string {
	prefix, err := strconv.QuotedPrefix(f.rest)
	if err != nil || prefix[0] != '"' {
		f.bad = true
		return ""
	}
	text, err := strconv.Unquote(prefix)
	f.bad = f.bad || err != nil
	f.rest = strings.TrimPrefix(f.rest[len(prefix):], " ")
	return text
}

func (f *fields) make() (*record, error) {
	r := &record{id: f.number(maxID), dir: f.number(2) == 1}
	r.parent = fileID{dev: f.number(0), ino: f.number(0)}
	r.boot, r.time, r.uid = f.word(), f.time(), uint32(f.number(1<<32))
	r.mark, r.where, r.name = f.word(), f.quoted(), f.quoted()
	if f.bad || f.rest != "" || r.id == 0 || !isMark(r.mark) || !isName(r.name) ||
		(r.where != "/" && checkPath(r.where) != nil) {
		return nil, errLine
	}
	return r, nil
}

func (f *fields) made() (uint64, *evidence, error) {
	id := f.number(maxID)
	e := &evidence{id: fileID{dev: f.number(0), ino: f.number(0)}, mode: uint32(f.number(0o10000)),
		uid: uint32(f.number(1 << 32)), marked: f.number(2) == 1}
	e.born, e.modified, e.changed = f.time(), f.time(), f.time()
	if f.bad || f.rest != "" {
		return 0, nil, errLine
	}
	return id, e, nil
}

// isName reports that name is one component of a path.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 255 && !strings.ContainsAny(name, "/\x00")
}

// isMark reports that text is a mark as it is made: it becomes part of a name.
func isMark(text string) bool {
	return len(text) == markLen && strings.Trim(text, "0123456789abcdef") == ""
}
