package runtime

import (
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
)

// copySupplied hands over a standard stream that is one of the files in whose place the sandbox has its own: a copy of what the
// caller has opened, since the name leads to something else inside. The host's descriptor is not passed on: through it root
// could change the file's mode and owner. The copy is sealed (memfd_create(2)).
func (p *linuxProcess) copySupplied() error {
	for i, f := range p.files {
		if f == nil || !opensSupplied(f) {
			continue
		}
		c, err := copyFile(f)
		if err != nil {
			return fmt.Errorf("%s: copy %s for the command: %w", streamNames[i], f.Name(), err)
		}
		p.copied[i], p.files[i] = f, c
	}
	return nil
}

// opensSupplied tells whether a file is open for reading and is one that fsview.ResolverFiles has its own of.
func opensSupplied(f *os.File) bool {
	var st unix.Stat_t
	fd := int(f.Fd())
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY {
		return false
	}
	return slices.ContainsFunc(fsview.ResolverPaths(), func(path string) bool {
		var named unix.Stat_t
		return unix.Stat(path, &named) == nil && named.Dev == st.Dev && named.Ino == st.Ino
	})
}

// copyFile is the whole content of a file in memory, at the same offset.
func copyFile(f *os.File) (*os.File, error) {
	fd, err := unix.MemfdCreate("srt-stream", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	c := os.NewFile(uintptr(fd), f.Name())
	offset, err := f.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = io.Copy(c, io.NewSectionReader(f, 0, 1<<30))
	}
	if err == nil {
		_, err = c.Seek(offset, io.SeekStart)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// returnCopies gives the caller's descriptors the position at which the command left off, and closes the copies.
func (p *linuxProcess) returnCopies() {
	for i, original := range p.copied {
		if original == nil {
			continue
		}
		if off, err := p.files[i].Seek(0, io.SeekCurrent); err == nil {
			_, _ = original.Seek(off, io.SeekStart) // it was a seekable file when the command started
		}
		p.files[i].Close()
		p.copied[i] = nil
	}
}
