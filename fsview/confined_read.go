package fsview

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
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
	dir  bool // it must not be listed either
	why  string
	id   Identity // what it was when the plan was made, if that is known
}

// devicesWhy stands for /dev, of which only the usual devices may be read.
const devicesWhy = rulePrivateDev + " (FS-47)"

// grantReading sets read: everything but what is marked, and what is revealed in that.
func (c *confiner) grantReading() {
	c.markKernel()
	sort.Slice(c.marks, func(i, j int) bool { return c.marks[i].path < c.marks[j].path })
	if c.learnObjects(); len(c.refused) > 0 {
		return
	}
	c.read = append(c.read, ReadRule{Path: "/dev", Right: ReadList, Dir: true})
	if !c.marked("/") {
		c.grantBeneath("/", true, readAll, false)
	}
	for _, s := range c.shown {
		if !policy.Covers("/dev", s.Source) {
			c.grantBeneath(s.Source, s.Dir, readAll, false)
		}
	}
	sort.SliceStable(c.read, func(i, j int) bool { return c.read[i].Path < c.read[j].Path })
}

// objects are what marks are about, by their paths, and whatever their paths: a rule of Landlock is of an object, and holds for
// all that is reached through it, by any mount.
type objects struct {
	marked map[Identity]*mark
	above  map[Identity]*mark // a directory above a mark; of several marks one of a directory
	paths  map[string]*mark   // the same by paths
	at     map[string]*mark   // marks by their paths
}

// learnObjects asks what the marks are, and what is above them.
func (c *confiner) learnObjects() {
	c.objects = objects{marked: map[Identity]*mark{}, above: map[Identity]*mark{}, paths: map[string]*mark{},
		at: map[string]*mark{}}
	for i := range c.marks {
		m := &c.marks[i]
		c.objects.at[m.path] = m
		info, err := c.in.Tree.Lstat(m.path)
		switch {
		case err == nil:
			c.objects.marked[info.ID] = m
		case !absent(err) || m.why != devicesWhy: // without a /dev there is nothing in it to be read
			c.refuse(RefusedUnlisted, m.why, m.path, fmt.Sprintf(whyGone, m.path, err))
			return
		}
		for at := m.path; at != "/"; {
			at = path.Dir(at)
			if known := c.objects.paths[at]; known != nil && (known.dir || !m.dir) {
				break // and so is all above it
			}
			info, err := c.in.Tree.Lstat(at)
			if err != nil {
				c.refuse(RefusedUnlisted, m.why, m.path, fmt.Sprintf(whyGone, at, err))
				return
			}
			c.objects.paths[at] = m
			if other := c.objects.above[info.ID]; other == nil || m.dir {
				c.objects.above[info.ID] = m
			}
		}
	}
}

// markKernel marks what every sandbox is kept from: devices, and for user id 0, which no mode of theirs keeps from it, the
// parts of /sys that a sandbox with mounts hides; their names are no secret, or no directory above them could be listed. Where a
// container shows nothing there, there is nothing to hide.
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
			c.marks = append(c.marks, mark{path: k.path, why: ruleKernelState + " (FS-47)"})
		}
	}
}

// marked reports whether a path is a mark's.
func (c *confiner) marked(path string) bool {
	return slices.ContainsFunc(c.marks, func(m mark) bool { return m.path == path })
}

// leadsTo gives a mark that is reached through an object, by its path or by another, one of a directory if there is one: the root
// directory, mounted once more somewhere, is still above all of them. nil: there is none.
func (c *confiner) leadsTo(path string, id Identity) *mark {
	m, other := c.objects.paths[path], c.objects.above[id]
	if m == nil || other != nil && other.dir {
		return other
	}
	return m
}

// grantBeneath grants rights at a path and at all beneath but what is marked there.
func (c *confiner) grantBeneath(path string, dir bool, right ReadRight, listed bool) {
	info, err := c.in.Tree.Lstat(path)
	switch {
	case err != nil && listed:
		return // gone
	case err != nil:
		c.refuse(RefusedUnlisted, devicesWhy, path, fmt.Sprintf(whyGone, path, err))
		return
	case c.objects.marked[info.ID] != nil && dir:
		m := c.objects.marked[info.ID]
		c.refuse(RefusedSame, m.why, m.path, fmt.Sprintf(whySame, path))
		return
	case c.objects.marked[info.ID] != nil && !slices.Contains(c.plan.Keep, path):
		return // another name of a file (FS-45)
	case !dir:
		c.add(ReadRule{path, right &^ ReadList, false, listed})
		return
	}
	m := c.leadsTo(path, info.ID)
	if m == nil {
		c.add(ReadRule{path, right, true, listed})
		return
	}
	if !m.dir && right&ReadList != 0 {
		// Files alone are hidden beneath: that directories are listed tells their names, which stat(2) does as well.
		c.add(ReadRule{path, ReadList, true, listed})
		right &^= ReadList
	}
	list, err := c.in.Tree.ReadDir(path)
	if err != nil {
		c.refuse(RefusedUnlisted, m.why, m.path, fmt.Sprintf(whyList, path, err))
		return
	}
	for _, e := range list {
		// Links lead to what has rules of its own, and nothing is read from sockets.
		if _, marked := c.objects.at[join(path, e.Name)]; !marked && e.Type != fs.ModeSymlink && e.Type != fs.ModeSocket {
			c.grantBeneath(join(path, e.Name), e.Type == fs.ModeDir, right, true)
		}
	}
}

// add adds a rule that grants something.
func (c *confiner) add(r ReadRule) {
	switch {
	case r.Right == 0:
	case len(c.read) == maxReadRules && len(c.refused) == 0:
		m := c.objects.paths[path.Dir(r.Path)]
		if m == nil {
			m = &c.marks[0]
		}
		c.refuse(RefusedMany, m.why, m.path, fmt.Sprintf(whyMany, maxReadRules))
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
