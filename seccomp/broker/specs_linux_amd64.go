package broker

import "golang.org/x/sys/unix"

// olderSpecs are the calls that newer architectures have not: those without a directory descriptor.
func olderSpecs(number int32) (spec, bool) {
	const cwd = unix.AT_FDCWD
	switch number {
	case unix.SYS_OPEN:
		return spec{"open", func(c *call) outcome { return c.legacyOpen(cwd, c.args[0], c.word(1), c.word(2)) }, false}, true
	case unix.SYS_CREAT:
		return spec{"creat", func(c *call) outcome {
			return c.legacyOpen(cwd, c.args[0], unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, c.word(1))
		}, false}, true
	case unix.SYS_MKDIR:
		return spec{"mkdir", func(c *call) outcome { return c.mkdir(cwd, c.args[0], c.word(1)) }, false}, true
	case unix.SYS_MKNOD:
		return spec{"mknod", func(c *call) outcome { return c.mknod(cwd, c.args[0], c.word(1), c.word(2)) }, false}, true
	case unix.SYS_SYMLINK:
		return spec{"symlink", func(c *call) outcome { return c.symlink(c.args[0], cwd, c.args[1]) }, false}, true
	case unix.SYS_LINK:
		return spec{"link", func(c *call) outcome { return c.link(cwd, c.args[0], cwd, c.args[1], 0) }, false}, true
	case unix.SYS_RENAME:
		return spec{"rename", func(c *call) outcome { return c.rename(cwd, c.args[0], cwd, c.args[1], 0) }, false}, true
	}
	return spec{}, false
}
