package fsview

import (
	"strings"
	"syscall"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// inKernelTree reports whether p lies in /proc, /dev or /sys.
func inKernelTree(p string) bool {
	return policy.Covers("/proc", p) || policy.Covers("/dev", p) || policy.Covers("/sys", p)
}

// hideReplaced places a read deny in /proc or /dev, which the sandbox replaces by its own (FS-47). What does not exist
// there needs no step. A path through a link, as /proc/self and /dev/stdin are, would name something else for each
// process, so that a mount cannot hide it.
func (b *builder) hideReplaced(p string, why *rule, hard bool) error {
	names := strings.Split(p[1:], "/")
	if names[0] == "proc" && len(names) > 1 && strings.Trim(names[1], "0123456789") == "" {
		b.note("%s: the sandbox has process ids of its own, nothing to hide (FS-47)", why.label())
		return nil
	}
	at := ""
	var info Info
	for _, name := range names {
		at += "/" + name
		var err error
		switch info, err = b.res.lstat(at); {
		case absent(err):
			b.note("%s: %q does not exist, nothing to hide (FS-47)", why.label(), p)
			return nil
		case err != nil:
			return uninspectedError(why, location{path: p, blocked: err})
		case info.IsLink() && at == "/"+names[0]:
			return uninspectedError(why, location{path: p, blocked: syscall.ELOOP}) // /dev or /proc itself
		case info.IsLink() && (names[0] == "proc" || privateLink(names[1])):
			return &EntryError{Entry: why.label(), Path: p, Reason: ErrPerProcess,
				Advice: "take the entry out; a command sees the processes of its own sandbox alone"}
		case info.IsLink():
			b.note("%s: the sandbox's /dev holds no %q, nothing to hide (FS-47)", why.label(), at)
			return nil
		}
	}
	n := b.node(p, info)
	if hard {
		first(&n.hard, why)
	} else {
		first(&n.hide, why)
	}
	return nil
}

// privateLink reports whether name is a link in the sandbox's own /dev that leads into /proc.
func privateLink(name string) bool {
	switch name {
	case "fd", "stdin", "stdout", "stderr", "core":
		return true
	}
	return false
}
