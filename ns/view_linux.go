package ns

import (
	"os"

	"golang.org/x/sys/unix"
)

// View opens what the sandbox sees of the file system, before its program begins: the root directory (O_PATH), in which the
// program's mounts will show, and the mount namespace, which lasts for as long as the descriptor does. Both are close-on-exec
// and the caller's to close.
func (p *Prepared) View() (root, namespace *os.File, err error) {
	dir := procDir(p.process.pid)
	files := [2]*os.File{}
	for i, f := range [...]struct {
		path  string
		flags int
	}{{dir + "root", unix.O_PATH}, {dir + "ns/mnt", unix.O_RDONLY}} {
		fd, err := unix.Open(f.path, f.flags|unix.O_CLOEXEC, 0)
		if err != nil {
			closeAll(files[:])
			return nil, nil, &StepError{Op: "open the view of the sandbox", Subject: f.path, Err: err}
		}
		files[i] = os.NewFile(uintptr(fd), f.path)
	}
	return files[0], files[1], nil
}
