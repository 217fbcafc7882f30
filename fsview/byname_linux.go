package fsview

import (
	"errors"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// placesByOpenat2 tells whether openat2(2) opens places (O_PATH). A sandbox of srt around this process performs that call for it,
// and can give it no such descriptor: ENOSYS.
var placesByOpenat2 = sync.OnceValue(func() bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC})
	if err == nil {
		unix.Close(fd)
	}
	return !errors.Is(err, unix.ENOSYS)
})

// openByName opens an absolute path name by name, following no link: one on the way is no directory (ENOTDIR).
// Its last step is the one that callers may have tolerate something, so that one directory stays open until the next call.
func (c *compiler) openByName(path string) ns.Slot {
	if c.above != 0 {
		c.p.Close(c.above)
	}
	at := c.openAt(path, ns.Int(unix.AT_FDCWD), "/")
	c.above = 0
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' }) {
		if c.above != 0 {
			c.p.Close(c.above)
		}
		c.above = at
		at = c.openAt(path, c.above.Arg(), name)
	}
	return at
}

func (c *compiler) openAt(path string, dir ns.Arg, name string) ns.Slot {
	return c.p.Call("open", path, unix.SYS_OPENAT, dir, c.p.Str(name), ns.Int(unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC), ns.Int(0))
}
