package credential

import "io"

const (
	// directBytes is the smallest buffer of a caller that a body is read into without a detour.
	directBytes = 2 << 10
	// readBytes is how much is read at once for a caller with a smaller one.
	readBytes = 4 << 10
	// windowBytes bounds how much of a caller's buffer is used at once, and with it what is kept after a match.
	windowBytes = 64 << 10
	// emptyReads is how often in a row a source may return nothing without an error.
	emptyReads = 100
)

// Body returns r with every sentinel that is injectable here replaced by its value (CRED-25): the leftmost first, across
// the borders of what r returns, and never within what was inserted. It holds back at most what may still become a
// sentinel, so that a body that comes piecemeal goes on without delay. A body with a Content-Encoding must not be given
// to it.
//
// What Read fills p with holds real values: who owns p overwrites it before it serves anyone else. The reader is not safe
// for concurrent use. Its errors are those of r, after all that came before, and ErrChanged.
func (i *Injection) Body(r io.Reader) io.Reader {
	return newReplacer(r, i.scanner, i.kept)
}

// replacer is the reader that Body returns. Bytes go one way: from src straight into the caller's buffer, where they are
// looked through and, as a rule, stay. What stands from the first match on, or may become one, moves to window and is
// taken from there first.
type replacer struct {
	*scanner
	src  io.Reader
	err  error // what src ended with, returned after the window is empty
	kept bool  // a value of another length than its sentinel's is not inserted

	room   []byte // what window lies in
	window []byte // what was read and has not gone out; sentinels in it are still sentinels
	base   int64  // how many bytes of the body came before the window
	looked bool   // plain and match are valid
	plain  int    // bytes of the window that go out as they are
	match  *secret
	hits   []hit // one per family

	value   *secret // the value being written
	written int     // bytes of it that have gone out
	size    int     // its length when it began
	fake    bool    // its sentinel goes out instead
}

// hit is where the next sentinel of a family stands, so that no byte is searched twice for one that is far away.
type hit struct {
	at    int64 // in the body; where to search from if there is no match
	found *secret
}

func newReplacer(r io.Reader, sc *scanner, kept bool) *replacer {
	return &replacer{scanner: sc, src: r, kept: kept, hits: make([]hit, len(sc.families))}
}

// Read implements io.Reader.
func (r *replacer) Read(p []byte) (int, error) {
	n, empty := 0, 0
	for n < len(p) {
		switch {
		case r.value != nil:
			wrote, err := r.emit(p[n:])
			if n += wrote; err != nil {
				return n, err
			}
		case r.plain > 0:
			k := copy(p[n:], r.window[:r.plain])
			r.consume(k)
			r.plain -= k
			n += k
		case r.match != nil:
			r.value, r.written = r.match, 0
			r.consume(len(r.match.sentinel))
			r.match, r.looked = nil, false
		case !r.looked && len(r.window) > 0:
			r.plain, r.match = r.look(r.window, r.err != nil)
			r.looked = true
		case n > 0:
			return n, nil
		case r.err != nil:
			return 0, r.err
		default:
			got, direct := r.fill(p)
			if direct > 0 {
				return direct, nil
			}
			if got > 0 {
				empty = 0
			} else if empty++; empty == emptyReads && r.err == nil {
				return 0, io.ErrNoProgress
			}
		}
	}
	return n, nil
}

// consume drops the first n bytes of the window.
func (r *replacer) consume(n int) {
	r.window = r.window[n:]
	r.base += int64(n)
}

// fill reads once from the source, behind what the window holds: got bytes. What needs no second look is in p already:
// direct bytes of it.
func (r *replacer) fill(p []byte) (got, direct int) {
	held := len(r.window)
	r.looked = false
	if len(p) < directBytes+held {
		if cap(r.window)-held < readBytes/2 {
			if cap(r.room) < held+readBytes {
				r.room = make([]byte, 0, held+readBytes)
			}
			r.window = append(r.room[:0], r.window...)
		}
		got, r.err = r.src.Read(r.window[held:cap(r.window)])
		r.window = r.window[:held+got]
		return got, 0
	}
	p = p[:min(len(p), windowBytes+held)]
	copy(p, r.window)
	got, r.err = r.src.Read(p[held:])
	p = p[:held+got]
	direct, r.match = r.look(p, r.err != nil)
	r.base += int64(direct)
	r.room = append(r.room[:0], p[direct:]...)
	r.window = r.room
	// What is left begins with a match or with what may become one.
	r.plain, r.looked = 0, true
	return got, direct
}

// look returns how many bytes of w, which stands at base, go out as they are, and the sentinel that follows them. last:
// nothing comes after w. Neither all of w nor a match: the rest has to wait.
func (r *replacer) look(w []byte, last bool) (plain int, match *secret) {
	plain = len(w)
	for i := range r.hits {
		h := &r.hits[i]
		if h.found == nil || h.at < r.base {
			from := int(max(h.at-r.base, 0))
			at, x := r.families[i].find(w, from)
			if x == nil {
				at = max(from, len(w)-r.longest+1)
			}
			h.at, h.found = r.base+int64(at), x
		}
		if at := int(h.at - r.base); h.found != nil && (at < plain || at == plain && shorter(h.found, match)) {
			plain, match = at, h.found
		}
	}
	if last || plain <= len(w)-r.longest {
		return plain, match
	}
	// What may become a sentinel and begins earlier has precedence over a complete one, and over what is plain.
	if wait := r.tail(w, 0); wait < plain {
		return wait, nil
	}
	return plain, match
}

// emit writes what is left of the current value to p.
func (r *replacer) emit(p []byte) (int, error) {
	x, n, changed := r.value, 0, false
	there := x.use(func(value []byte) {
		if r.written == 0 {
			r.size, r.fake = len(value), r.kept && len(value) != len(x.sentinel)
		}
		if changed = len(value) != r.size; !changed && !r.fake {
			n = copy(p, value[r.written:])
		}
	})
	if !there && r.written == 0 {
		// The session is over: what the command sent goes out as it sent it.
		r.size, r.fake = len(x.sentinel), true
	}
	switch {
	case r.fake:
		r.size = len(x.sentinel)
		n = copy(p, x.sentinel[r.written:])
	case !there || changed:
		return 0, ErrChanged
	}
	if r.written += n; r.written == r.size {
		r.value = nil
	}
	return n, nil
}
