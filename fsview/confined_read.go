package fsview

import (
	"fmt"
	"io/fs"
	"sort"
	"strings"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// Landlock grants reading beneath a directory and can take nothing out of that (landlock(7)). So what must not be read is held
// by granting, name by name, what is beside it. That has two consequences, which docs/modes.md tells:
//
//   - a directory above a hidden one cannot be listed, since that right too would hold for all beneath it;
//   - what comes to lie in such a directory after the start, or is replaced there, cannot be read.

// ReadRight is a set of rights to read.
type ReadRight uint8

// The rights.
const (
	ReadFile    ReadRight = 1 << iota // open files for reading
	ReadList                          // list directories
	ReadExecute                       // execute files
	readAll     = ReadFile | ReadList | ReadExecute
)

// String names the rights.
func (r ReadRight) String() string {
	var names []string
	for i, name := range [...]string{"read", "list", "execute"} {
		if r>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// ReadRule grants rights at and beneath a path.
type ReadRule struct {
	Path  string
	Right ReadRight
	Dir   bool
	// Listed says that the path comes from the listing of a directory: what is gone by now needs no rule.
	Listed bool
}

// maxReadRules bounds the rules of one sandbox. Each takes the kernel, and the start, some microseconds.
const maxReadRules = 8192

// mark is what must not be read.
type mark struct {
	path string
	dir  bool // a directory: it must not be listed either
	why  string
	id   Identity // what it was when the plan was made, if that is known
}

// devicesWhy stands for /dev, of which only the usual devices may be read.
const devicesWhy = rulePrivateDev + " (FS-47)"

// grantReading sets read: everything but what is marked, and what is revealed in that.
func (c *confiner) grantReading() {
	c.markKernel()
	sort.Slice(c.marks, func(i, j int) bool { return c.marks[i].path < c.marks[j].path })
	c.read = append(c.read, ReadRule{Path: "/dev", Right: ReadList, Dir: true})
	if !c.marked("/") {
		c.grant("/", true, readAll, false)
	}
	for _, s := range c.shown {
		if s.Source == "/" || policy.Covers("/dev", s.Source) {
			continue
		}
		c.grantBeneath(s.Source, s.Dir, readAll, false)
	}
	sort.SliceStable(c.read, func(i, j int) bool { return c.read[i].Path < c.read[j].Path })
}

// markKernel marks what every sandbox is kept from: devices, and for user id 0, which no mode of theirs keeps from it, the
// parts of /sys that a sandbox with mounts hides. Where a container shows nothing there, there is nothing to hide.
func (c *confiner) markKernel() {
	if !c.marked("/dev") {
		c.marks = append(c.marks, mark{path: "/dev", why: devicesWhy})
	}
	if c.in.UID != 0 {
		return
	}
	for _, k := range kernelPaths {
		if k.how != hidden || !policy.Covers("/sys", k.path) || c.marked(k.path) {
			continue
		}
		if list, err := c.in.Tree.ReadDir(k.path); err == nil && len(list) > 0 {
			c.marks = append(c.marks, mark{path: k.path, dir: true, why: ruleKernelState + " (FS-47)"})
		}
	}
}

// marked reports whether a path is a mark's.
func (c *confiner) marked(path string) bool {
	for i := range c.marks {
		if c.marks[i].path == path {
			return true
		}
	}
	return false
}

// within gives the first mark strictly beneath a path, and whether one of a directory is among them. nil: there is none.
func (c *confiner) within(path string) (found *mark, dirs bool) {
	for i := range c.marks {
		if m := &c.marks[i]; m.path != path && policy.Covers(path, m.path) {
			if found == nil || m.dir && !dirs {
				found = m // one of a directory is the one to name
			}
			dirs = dirs || m.dir
		}
	}
	return found, dirs
}

// grant grants rights at a path and beneath, unless it is marked.
func (c *confiner) grant(path string, dir bool, right ReadRight, listed bool) {
	if !c.marked(path) {
		c.grantBeneath(path, dir, right, listed)
	}
}

// grantBeneath grants rights at a path and at all beneath but what is marked there.
func (c *confiner) grantBeneath(path string, dir bool, right ReadRight, listed bool) {
	if !dir {
		right &^= ReadList
	}
	found, dirs := c.within(path)
	if found == nil {
		c.add(ReadRule{path, right, dir, listed})
		return
	}
	if !dirs && right&ReadList != 0 {
		// Files alone are hidden beneath: that directories are listed tells their names, which stat(2) does as well.
		c.add(ReadRule{path, ReadList, true, listed})
		right &^= ReadList
	}
	list, err := c.in.Tree.ReadDir(path)
	if err != nil {
		c.refuse(found.why, found.path, fmt.Sprintf(whyList, path, err))
		return
	}
	for _, e := range list {
		c.grantEntry(join(path, e.Name), e.Type, right)
	}
}

// grantEntry grants rights at what was listed. Links lead to what has rules of its own, and nothing is read from sockets.
func (c *confiner) grantEntry(path string, kind fs.FileMode, right ReadRight) {
	switch kind {
	case fs.ModeSymlink, fs.ModeSocket:
		return
	case fs.ModeDir:
		c.grant(path, true, right, true)
		return
	}
	if len(c.same) > 0 {
		info, err := c.in.Tree.Lstat(path)
		if err != nil || c.same[info.ID] {
			return // gone, or a second name of what is hidden: the kernel grants reading to the file, whatever its name
		}
	}
	c.grant(path, false, right, true)
}

// add adds a rule that grants something.
func (c *confiner) add(r ReadRule) {
	switch {
	case r.Right == 0:
	case len(c.read) == maxReadRules && len(c.refused) == 0:
		m := &c.marks[0]
		if found, _ := c.within(above(r.Path)); found != nil {
			m = found
		}
		c.refuse(m.why, m.path, fmt.Sprintf(whyMany, maxReadRules))
	case len(c.read) < maxReadRules:
		c.read = append(c.read, r)
	}
}

// DeviceRule is a device, or a directory of terminals, that a command may read, write and control.
type DeviceRule struct {
	Path string
	Dir  bool
}

// DeviceRules are those of every sandbox: what a /dev of its own would hold (FS-47). One that a system lacks is left out.
func DeviceRules() []DeviceRule {
	list := make([]DeviceRule, 0, len(devNodes)+2)
	for _, n := range devNodes {
		list = append(list, DeviceRule{Path: "/dev/" + n.name})
	}
	return append(list, DeviceRule{Path: "/dev/ptmx"}, DeviceRule{Path: "/dev/pts", Dir: true})
}
