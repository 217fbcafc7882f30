package bpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// maxLevels is how deep user namespaces nest (create_user_ns in the kernel), with one to spare.
const maxLevels = 34

// sandboxNamespace proves that a descriptor is of a user namespace that is not this process's own, and gives a copy of it
// and its lineage. This process is in the host's: only there do its capabilities count.
func sandboxNamespace(file *os.File) (own *os.File, lineage []uint32, err error) {
	kind, err := unix.IoctlRetInt(int(file.Fd()), unix.NS_GET_NSTYPE)
	runtime.KeepAlive(file)
	if err != nil || kind != unix.CLONE_NEWUSER {
		return nil, nil, fmt.Errorf("%s: %w", file.Name(), errors.Join(ErrNamespace, err))
	}
	var ours unix.Stat_t
	if err := unix.Stat("/proc/self/ns/user", &ours); err != nil {
		return nil, nil, &os.PathError{Op: "stat", Path: "/proc/self/ns/user", Err: err}
	}
	if own, err = copyDescriptor(file); err != nil {
		return nil, nil, err
	}
	if lineage, err = lineageOf(own); err != nil {
		own.Close()
		return nil, nil, err
	}
	if uint64(lineage[0]) == ours.Ino {
		own.Close()
		return nil, nil, fmt.Errorf("%s: %w", file.Name(), ErrNamespace)
	}
	return own, lineage, nil
}

// lineageOf gives the number of a user namespace and those of the namespaces that hold it, up to this process's own.
func lineageOf(file *os.File) (numbers []uint32, err error) {
	at := file
	for range maxLevels {
		var st unix.Stat_t
		err := unix.Fstat(int(at.Fd()), &st)
		parent, parentErr := unix.IoctlRetInt(int(at.Fd()), unix.NS_GET_PARENT)
		if at != file {
			at.Close()
		}
		if err != nil {
			return nil, os.NewSyscallError("fstat", err)
		}
		numbers = append(numbers, uint32(st.Ino)) // 32 bits in the kernel, too (struct ns_common)
		if errors.Is(parentErr, unix.EPERM) {     // the parent of this process's own namespace is nobody's to see
			return numbers, nil
		}
		if parentErr != nil {
			return nil, os.NewSyscallError("ioctl NS_GET_PARENT", parentErr)
		}
		at = os.NewFile(uintptr(parent), "user namespace")
	}
	at.Close()
	return nil, ErrNamespace
}

// copyDescriptor duplicates a descriptor, close-on-exec.
func copyDescriptor(file *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	runtime.KeepAlive(file)
	if err != nil {
		return nil, os.NewSyscallError("fcntl F_DUPFD_CLOEXEC", err)
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}
