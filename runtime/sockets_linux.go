package runtime

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// A location says which socket of the host is meant as long as the command cannot move another one there. Where it can, in
// a place that it may write, only the very sockets count that lay there when it started.

// socketRules are the sockets of the host that a command may connect to (NET-80). The zero value allows none. Once made they
// do not change: any number of goroutines may ask them.
type socketRules struct {
	listed   []string // locations; what lies beneath them counts, too
	writable writableParts
	there    map[socketFile]struct{} // those in a place that the command may write
	pins     []*os.File              // of these, so that no other file gets their numbers
}

// socketFile is a file, whatever its name.
type socketFile struct{ dev, ino uint64 }

// maxSocketNames is how many names are looked at, and maxSocketPins how many sockets can be held.
const (
	maxSocketNames = 4096
	maxSocketPins  = 256
)

// newSocketRules looks at what the listed locations hold now. warn is told, once, what does not count because there is too
// much of it. The caller releases the rules.
func newSocketRules(listed []string, plan *fsview.Plan, warn func(string)) *socketRules {
	r := &socketRules{listed: listed, writable: writablePartsOf(plan), there: map[socketFile]struct{}{}}
	left := maxSocketNames
	for _, start := range r.starts() {
		if !r.search(start, &left) {
			warn(fmt.Sprintf("network.allowUnixSockets: there are more than %d names, or more than %d sockets, in listed places that the command "+
				"may write. The sockets beyond these are refused: list the sockets themselves, or directories with less in them", maxSocketNames, maxSocketPins))
			break
		}
	}
	return r
}

// starts are where sockets may lie that are listed and in a place that the command may write.
func (r *socketRules) starts() (paths []string) {
	for _, p := range r.listed {
		if r.writable.around(p) || r.writable.at(p) {
			paths = append(paths, p)
			continue
		}
		for at, writable := range r.writable.begin {
			if writable && policy.Covers(p, at) {
				paths = append(paths, at)
			}
		}
	}
	return paths
}

// search notes the sockets at and beneath a location, those less deep first, as long as left is not used up.
func (r *socketRules) search(start string, left *int) bool {
	if info, err := os.Lstat(start); err != nil || !info.IsDir() {
		return err != nil || info.Mode().Type() != fs.ModeSocket || r.note(start)
	}
	for dirs := []string{start}; len(dirs) > 0; dirs = dirs[1:] {
		f, err := os.Open(dirs[0])
		if err != nil {
			continue // where srt cannot look, what is there does not count
		}
		deeper, ok := r.searchDir(f, left)
		f.Close()
		if !ok {
			return false
		}
		dirs = append(dirs, deeper...)
	}
	return true
}

// searchDir notes the sockets in a directory and gives the directories in it.
func (r *socketRules) searchDir(dir *os.File, left *int) (deeper []string, ok bool) {
	const batch = 256
	for {
		list, err := dir.ReadDir(min(batch, *left+1))
		for _, e := range list {
			if *left--; *left < 0 {
				return nil, false
			}
			at := filepath.Join(dir.Name(), e.Name())
			switch e.Type() {
			case fs.ModeDir:
				deeper = append(deeper, at)
			case fs.ModeSocket:
				if !r.note(at) {
					return nil, false
				}
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return deeper, true
		case err != nil:
			return deeper, true // as for a directory that cannot be opened
		}
	}
}

// note remembers the socket at a location, if the command may write there. It is false when there is no room.
func (r *socketRules) note(location string) bool {
	if !r.writable.around(location) {
		return true // the location tells
	}
	if len(r.pins) >= maxSocketPins {
		return false
	}
	fd, err := unix.Open(location, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return true // it is gone
	}
	pin := os.NewFile(uintptr(fd), location)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		pin.Close()
		return true
	}
	r.pins = append(r.pins, pin)
	r.there[numberOf(st.Dev, st.Ino)] = struct{}{}
	return true
}

// numberOf is a file by its numbers, however the caller's call spells that of the device.
func numberOf(dev, ino uint64) socketFile {
	return socketFile{unix.Mkdev(unix.Major(dev), unix.Minor(dev)), ino}
}

// allowed tells whether the command may connect to the socket at a location, the file of these numbers.
func (r *socketRules) allowed(location string, dev, ino uint64) bool {
	if r == nil || !policy.SocketAllowed(r.listed, location) {
		return false
	}
	if !r.writable.around(location) {
		return true
	}
	_, there := r.there[numberOf(dev, ino)]
	return there
}

// release lets the files go. Nobody may ask any more.
func (r *socketRules) release() error {
	if r == nil {
		return nil
	}
	var errs []error
	for _, f := range r.pins {
		errs = append(errs, f.Close())
	}
	r.pins = nil
	return errors.Join(errs...)
}

// writableParts are the parts of a command's view that it may write, by where they begin.
type writableParts struct {
	begin map[string]bool
	root  bool
}

// unwritable are the steps that begin a part in which no name can be made.
var unwritable = [...]bool{fsview.ReadOnly: true, fsview.Reveal: true, fsview.HideFile: true, fsview.EmptyDir: true, fsview.Mask: true, fsview.Supplied: true}

func writablePartsOf(plan *fsview.Plan) writableParts {
	w := writableParts{begin: map[string]bool{}, root: plan.RootWritable || plan.Unrestricted}
	for i := range plan.Steps {
		if s := &plan.Steps[i]; s.Kind != fsview.Pin {
			w.begin[s.Path] = int(s.Kind) >= len(unwritable) || !unwritable[s.Kind]
		}
	}
	return w
}

// at tells whether the command may write at a location, a directory: the deepest part decides.
func (w *writableParts) at(location string) bool {
	for location != "" {
		if writable, ok := w.begin[location]; ok {
			return writable
		}
		location = location[:max(0, strings.LastIndexByte(location, '/'))]
	}
	return w.root
}

// around is at for the directory that a location lies in.
func (w *writableParts) around(location string) bool {
	return w.at(location[:max(0, strings.LastIndexByte(location, '/'))])
}

// ruleSockets makes the rules about sockets of the host, once there is a plan. It must be before the command exists.
func (l *launch) ruleSockets() {
	if l.dry || !l.captured() && !l.confines() || l.cfg.Network.AllowAllUnixSockets || len(l.sockets) == 0 {
		return
	}
	l.socketRules = newSocketRules(l.sockets, l.plan, l.cmd.sandbox.opts.warn)
}
