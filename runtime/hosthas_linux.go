package runtime

import (
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// A call that does not find a name within something hidden has been refused only if the host has something of that name: a
// program that is looked for in each directory of PATH, or a settings file that most people do not have, is missing with and
// without a sandbox.

// hostPatience is how long a look at the host's files may take. A report does not wait for a server that does not answer.
const hostPatience = 100 * time.Millisecond

// hostLooks looks at files of the host for reports. The zero value is ready; it is safe for concurrent use.
type hostLooks struct {
	stalled atomic.Bool // a look has not come back yet: no other one is begun meanwhile
}

// atHost is what the host has at a path.
type atHost uint8

const (
	hostUnknown atHost = iota // it could not be found out
	hostNothing
	hostLink // a symbolic link
	hostObject
)

// look finds out what the host has at a path, not following a link there.
func (h *hostLooks) look(path string) atHost {
	if h.stalled.Load() {
		return hostUnknown
	}
	found := make(chan atHost, 1)
	timer := time.NewTimer(hostPatience)
	defer timer.Stop()
	go func() { found <- lookAtHost(path) }()
	select {
	case what := <-found:
		return what
	case <-timer.C:
		h.stalled.Store(true)
		go func() {
			<-found
			h.stalled.Store(false)
		}()
		return hostUnknown
	}
}

func lookAtHost(path string) atHost {
	var st unix.Stat_t
	switch err := unix.Lstat(path, &st); {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return hostNothing
	case err != nil:
		return hostUnknown
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return hostLink
	}
	return hostObject
}

// missingAnyway tells whether a call that found nothing would have found nothing without the sandbox as well: the host has
// nothing of that name, or, where a link was to be read, no link. Where that cannot be told it counts as refused.
func (h *hostLooks) missingAnyway(r refusedAccess, v *fsview.Judgement) bool {
	object := r.path
	switch {
	case !v.Substitute, r.errno != unix.ENOENT && !(r.errno == 0 && r.access == fsview.AccessRead):
		return false
	case r.access == fsview.AccessCreate:
		object = filepath.Dir(object)
	}
	if !policy.Covers(v.Path, object) {
		return false
	}
	what := h.look(object)
	return what == hostNothing || what == hostObject && strings.HasPrefix(r.call, "readlink")
}
