package fsview

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// The late steps of a plan are those beneath /proc, /dev and /sys (FS-47). They follow the private /dev, the fresh /proc and
// the table of kernel paths, so that what is shown again of /sys is what the table leaves of it.

// attachLateSteps appends them.
func (c *compiler) attachLateSteps() {
	for _, s := range c.plan.Steps {
		if s.Late && s.Kind == Reveal && !hiddenByTable(s) {
			c.openSource(s)
		}
	}
	for _, s := range c.plan.Steps {
		switch {
		case !s.Late || hiddenByTable(s):
		case policy.Covers("/sys", s.Path):
			c.attach(s)
		default:
			c.attachReplaced(s)
		}
	}
}

// hiddenByTable tells whether the table of system.go hides, beneath /sys, what a late step is about: nothing shows there any
// more, and no rule of the settings re-opens it. The step's object was there, so this kernel has the path.
func hiddenByTable(s Step) bool {
	for _, k := range kernelPaths {
		if k.how == hidden && policy.Covers("/sys", k.path) &&
			(policy.Covers(k.path, s.Path) || (s.Source != "" && policy.Covers(k.path, s.Source))) {
			return true
		}
	}
	return false
}

// attachReplaced appends a step that hides something beneath /proc or /dev, whose content is the sandbox's own: what is
// not there needs no hiding, and there is no identity to prove.
func (c *compiler) attachReplaced(s Step) {
	fd := c.open(s.Path)
	c.p.Tolerate(syscall.ENOENT, syscall.ENOTDIR)
	var tree ns.Slot
	if s.Kind == HideDir {
		tree = c.hiddenTree(s.Path)
	} else {
		tree = c.maskTree(s.Path)
	}
	c.p.Call("mount on", s.Path, unix.SYS_MOVE_MOUNT, tree.Arg(), c.p.Str(""), fd.Arg(), c.p.Str(""),
		ns.Int(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
	c.p.OnlyIf(fd)
	c.p.Close(tree)
	c.p.Close(fd)
}
