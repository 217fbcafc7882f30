package bpf

import (
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Layout of struct traced in programs/trace.h.
const (
	tracedSize  = 40
	tracedLost  = 8
	tracedGaps  = 32
	tracedReads = 1
	tracedHides = 2
)

type tracedValue struct {
	id          uint64
	options     TraceOptions
	level, exec uint32
}

func (v tracedValue) encode() []byte {
	flags := uint32(0)
	if v.options.Reads {
		flags |= tracedReads
	}
	if v.options.Hides {
		flags |= tracedHides
	}
	b := le.AppendUint64(le.AppendUint64(make([]byte, 0, tracedSize), v.id), 0)
	return append(b, words(flags, v.level, v.exec, 0, 0, 0)...)
}

// Layout of struct event in programs/trace.h.
const (
	eventComm   = 56
	eventBase   = 72
	eventText   = 76
	eventHeader = 80
	eventSize   = eventHeader + 16384 + 4096
	// eventUnusable are the problems after which a path says nothing.
	eventUnusable = 3
	// eventNowhere is said of what has no path.
	eventNowhere = 4
)

// event is a record as the program wrote it.
type event struct {
	session, flags uint64
	origin         uint64
	links, gaps    uint32
	time           time.Duration
	pid, tid       int
	call           uint16
	errno          syscall.Errno
	problems       uint16
	comm           string
	base, text     [2]string
}

// decodeEvent reads a record. It fails for one that is no whole record of this package.
func decodeEvent(b []byte) (e event, ok bool) {
	if len(b) < eventHeader {
		return e, false
	}
	e = event{session: le.Uint64(b), time: time.Duration(le.Uint64(b[8:])), flags: le.Uint64(b[16:]), pid: int(le.Uint32(b[24:])),
		tid: int(le.Uint32(b[28:])), call: le.Uint16(b[32:]), errno: syscall.Errno(le.Uint16(b[34:])), problems: le.Uint16(b[36:]), origin: le.Uint64(b[40:]), links: le.Uint32(b[48:]),
		gaps: le.Uint32(b[52:]), comm: text(b[eventComm:][:16])}
	data := b[eventHeader:]
	for i := range e.base {
		for _, part := range []struct {
			to   *string
			size int
		}{{&e.base[i], int(le.Uint16(b[eventBase+2*i:]))}, {&e.text[i], int(le.Uint16(b[eventText+2*i:]))}} {
			if part.size > len(data) {
				return e, false
			}
			*part.to, data = string(data[:part.size]), data[part.size:]
		}
	}
	return e, true
}

// refused makes of a record what is told. It fails for one whose paths say nothing.
func (t *Tracer) refused(e *event) (r Refused, ok bool) {
	c := t.callOf(e)
	if c == nil {
		return r, false
	}
	r = Refused{Call: c.name, Errno: e.errno, PID: e.pid, TID: e.tid, Process: e.comm, Monotonic: e.time}
	count := 1
	if len(c.effects[1]) > 0 {
		count = 2
	}
	for i := range count {
		r.Paths = append(r.Paths, TracedPath{Dir: outward(e.base[i]), Text: e.text[i], Effects: c.effectsOf(i, e.flags), Follow: c.follows(e.flags)})
	}
	if c.change == ChangeName {
		r.Other = &TracedPath{Dir: outward(e.base[1]), Text: e.text[1], Follow: e.flags&unix.AT_SYMLINK_FOLLOW != 0}
	}
	return r, true
}

// callOf is the call of a record, nil where its paths say nothing.
func (t *Tracer) callOf(e *event) *tracedCall {
	if e.problems&eventUnusable != 0 || int(e.call) >= maxCalls || t.byCall[e.call] == 0 {
		return nil
	}
	return &t.calls[t.byCall[e.call]-1]
}

// changes says that a record is of a call that succeeded in changing a name.
func (t *Tracer) changes(e *event) bool {
	if e.errno != 0 || int(e.call) >= maxCalls || t.byCall[e.call] == 0 {
		return false
	}
	kind := t.calls[t.byCall[e.call]-1].kind
	return kind != callOpen && kind != callOpenHow
}

// change makes of such a record what has changed. One whose paths say nothing is ChangeUnknown.
func (t *Tracer) change(e *event) Change {
	c := t.callOf(e)
	if c == nil || e.problems != 0 {
		return Change{}
	}
	first, second := TracedPath{Dir: outward(e.base[0]), Text: e.text[0]}, TracedPath{Dir: outward(e.base[1]), Text: e.text[1]}
	change := Change{Kind: c.change, TID: e.tid, Monotonic: e.time}
	switch c.change {
	case ChangeLink:
		change.New, change.Target = first, second.Text
	case ChangeName:
		change.Old, change.New = second, first
	case ChangeMove:
		change.Old, change.New = first, second
		if c.flags != none && e.flags&unix.RENAME_EXCHANGE != 0 {
			change.Kind = ChangeSwap
		}
	default:
		change.Old, change.Directory = first, c.name == "rmdir" || c.flags != none && e.flags&unix.AT_REMOVEDIR != 0
	}
	return change
}

// Layout of struct miss in programs/trace.h.
const (
	missSize  = 24 + missPath
	missPath  = 128
	missErrno = syscall.ENOENT
)

// missed is by what the program recognises the same call that finds nothing again; nil where it is told each time.
func (e *event) missed() []byte {
	if e.errno != missErrno || e.text[0] == "" || len(e.text[0]) >= missPath-1 || e.text[1] != "" || e.base[1] != "" {
		return nil
	}
	b := le.AppendUint64(le.AppendUint64(make([]byte, 0, missSize), e.session), e.origin)
	b = append(b, words(e.links, uint32(e.call))...)
	return append(append(b, e.text[0]...), make([]byte, missPath-len(e.text[0]))...)
}

// outward makes a path of names that are listed from the inside to the outside, with a slash after each.
func outward(names string) string {
	list := strings.Split(strings.TrimSuffix(names, "/"), "/")
	var b strings.Builder
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] != "" {
			b.WriteByte('/')
			b.WriteString(list[i])
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// Path is the path as far as it can be told without asking the disk: absolute, without "." and "..". A symbolic link in it
// stays, and a ".." after one is taken for the directory that the name of the link lies in.
func (p TracedPath) Path() string {
	if p.Text == "" {
		return p.Dir
	}
	return path.Join(p.Dir, p.Text)
}
