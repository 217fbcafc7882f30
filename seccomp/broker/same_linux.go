package broker

import (
	"bytes"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
)

// Programs write a settings file anew where nothing in it has changed: git makes .git/modules/x/config.lock with what
// config holds already, and renames it onto config. Of such a rename onto a file that must not change, all that can be
// done is done: the new file goes, the old one stays as it is, and the caller is told that it succeeded.

// sameMax is the largest file that is compared, sameChunk how much of it at once.
const (
	sameMax   = 1 << 20
	sameChunk = 32 << 10
)

// replaced performs a refused rename of a regular file onto another with the very same content: it removes the first. done
// is false where that cannot be, and nothing has been done then.
func (c *call) replaced(t twoPaths) (done bool) {
	old, errno := c.locate(t.start, t.from, 0)
	if errno != 0 || !c.comparable(old) {
		return false
	}
	target, errno := c.locate(t.end, t.to, 0)
	if errno != 0 || !c.comparable(target) {
		return false
	}
	a, errno := c.look(old.object)
	b, errno2 := c.look(target.object)
	if errno != 0 || errno2 != 0 || a.Size != b.Size || a.Ino == b.Ino && a.Dev_major == b.Dev_major && a.Dev_minor == b.Dev_minor {
		return false // two names of one file stay two, as after any rename
	}
	if !c.sameContent(old.object, target.object, a.Size) {
		return false
	}
	if c.s.config.Changes != nil {
		if _, denied := c.judgeName(old, fsview.AccessRemove); denied {
			return false
		}
	}
	p, errno := c.program(false)
	if errno != 0 {
		return false
	}
	p.Call("remove", old.last, unix.SYS_UNLINKAT, p.from(origin{old.dir}), p.Str(old.last), zero)
	p.finish()
	r, errno := p.do()
	return errno == 0 && r.Failed < 0
}

// comparable tells whether the object at a place is a regular file of a size that is compared, and one that the caller may
// see. A hidden file shows as one without permissions.
func (c *call) comparable(at place) bool {
	if at.object < 0 || strings.HasSuffix(at.last, "/") {
		return false
	}
	i, errno := c.look(at.object)
	if errno != 0 || i.kind() != unix.S_IFREG || i.Size == 0 || i.Size > sameMax || i.Mode&0o777 == 0 {
		return false
	}
	if !c.s.config.Judge.Reads() {
		return true
	}
	where, errno := c.whereObject(at)
	if errno != 0 {
		return false
	}
	_, denied := c.s.config.Judge.Open(where)
	return !denied
}

// sameContent compares size bytes of two files, which the hand reads with the caller's rights.
func (c *call) sameContent(a, b int, size uint64) bool {
	for off := uint64(0); off <= size; off += sameChunk { // one byte beyond the end is asked for too
		first, ok := c.readBoth(a, b, off)
		if !ok || len(first) != int(min(size-off, sameChunk)) {
			return false
		}
	}
	return true
}

// readBoth reads a chunk of two files and gives it if it is the same in both.
func (c *call) readBoth(a, b int, off uint64) (chunk []byte, same bool) {
	p, errno := c.program(false)
	if errno != 0 {
		return nil, false
	}
	var counts [2]ns.Slot
	var texts [2][]byte
	for i, fd := range [...]int{a, b} {
		file := p.ReopenFD("compare", "files", p.hand.PassFD(fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
		var at ns.Arg
		at, texts[i] = p.Scratch(sameChunk)
		counts[i] = p.Call("compare", "files", syscall.SYS_PREAD64, file.Arg(), at, ns.Int(sameChunk), ns.Int(off))
	}
	r, errno := p.do()
	if errno != 0 || r.Failed >= 0 {
		return nil, false
	}
	m, ok := r.Value(counts[0])
	n, ok2 := r.Value(counts[1])
	if !ok || !ok2 || m != n {
		return nil, false
	}
	return texts[0][:m], bytes.Equal(texts[0][:m], texts[1][:n])
}
