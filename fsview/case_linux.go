package fsview

import (
	"errors"

	"golang.org/x/sys/unix"
)

// casefoldFlag is FS_CASEFOLD_FL, which a directory's flags have if it ignores letter case (linux/fs.h).
const casefoldFlag = 0x40000000

// caseOfType is what a type of file system does with letter case.
type caseOfType uint8

const (
	caseCounts  caseOfType = iota
	caseByFlag             // each directory has a flag
	caseIgnored            // all of them ignore it, or nobody here can tell (FUSE and the like)
)

// caseOf gives that for a type in statfs(2). Those it does not know ignore nothing, or are not found out.
func caseOf(magic int64) caseOfType {
	switch uint32(magic) {
	case 0xef53, // ext4
		0xf2f52010, // F2FS
		0x01021994, // tmpfs
		0xca451a4e, // bcachefs
		0x794c7630: // overlay
		return caseByFlag
	case 0x4d44, // FAT
		0x2011bab0,             // exFAT
		0x5346544e, 0x7366746e, // NTFS
		0x4244, 0x482b, // HFS, HFS+
		0x517b, 0xff534d42, 0xfe534d42, // SMB
		0x01021997, // 9P, by which hosts of virtual machines share theirs
		0x65735546, // FUSE
		0x786f4256, // VirtualBox
		0xadff:     // Amiga
		return caseIgnored
	}
	return caseCounts
}

// IgnoresCase implements Tree.
func (hostTree) IgnoresCase(path string) bool {
	var st unix.Statfs_t
	if err := ignoringEINTR(func() error { return unix.Statfs(path, &st) }); err != nil {
		return true
	}
	switch caseOf(st.Type) {
	case caseCounts:
		return false
	case caseIgnored:
		return true
	}
	var fd int
	err := ignoringEINTR(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err == nil {
		return flags&casefoldFlag != 0
	}
	for _, lacking := range []error{unix.ENOTTY, unix.EOPNOTSUPP, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, lacking) {
			return false // a kernel or file system without such flags
		}
	}
	return true
}
