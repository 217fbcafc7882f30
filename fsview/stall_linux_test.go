package fsview

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A file system in user space whose server has stopped: it answers that it is there (FUSE_INIT), and then nothing. The
// messages are those of linux/fuse.h.
const (
	fuseInit       = 26
	fuseInHeader   = 40
	fuseOutHeader  = 16
	fuseInitOut    = 64
	fuseBufferSize = 1 << 17 // no less than FUSE_MIN_READ_BUFFER and the largest write
)

// mountStalled mounts such a file system and gives what ends it: every question that waits is then answered with an
// error.
func mountStalled(dir string) (end func() error, err error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0", fd)
	if err := unix.Mount("stalled", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return nil, errors.Join(fmt.Errorf("mount: %w", err), unix.Close(fd))
	}
	request := make([]byte, fuseBufferSize)
	n, err := unix.Read(fd, request)
	if err != nil || n < fuseInHeader+8 || binary.NativeEndian.Uint32(request[4:]) != fuseInit {
		return nil, fmt.Errorf("the first request is not FUSE_INIT: %d bytes, %w", n, err)
	}
	answer := make([]byte, fuseOutHeader+fuseInitOut)
	binary.NativeEndian.PutUint32(answer, uint32(len(answer)))
	copy(answer[8:16], request[8:16])            // unique
	copy(answer[fuseOutHeader:], request[40:48]) // the kernel's own version
	if _, err := unix.Write(fd, answer); err != nil {
		return nil, fmt.Errorf("answer FUSE_INIT: %w", err)
	}
	return func() error { return errors.Join(unix.Close(fd), unix.Unmount(dir, unix.MNT_DETACH)) }, nil
}

// stalledDir names the directory in which the child of TestStalledFileSystem works.
const stalledDir = "SRT_TEST_STALLED_DIR"

// TestStalledFileSystem: a start ends with an error that names the directory when a file system hangs. The mount is made
// in namespaces of a child's own.
func TestStalledFileSystem(t *testing.T) {
	if dir := os.Getenv(stalledDir); dir != "" {
		stalledChild(t, dir)
		return
	}
	if err := unix.Access("/dev/fuse", unix.R_OK|unix.W_OK); err != nil {
		t.Skipf("got %v, want a /dev/fuse that this user may open", err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestStalledFileSystem$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), stalledDir+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestStalledFileSystem") {
		t.Errorf("%v\n%s", err, out)
	}
}

func stalledChild(t *testing.T, dir string) {
	mounted := filepath.Join(dir, "p", "mnt")
	if err := errors.Join(os.MkdirAll(mounted, 0o755), os.Symlink("mnt", filepath.Join(dir, "p", "l"))); err != nil {
		t.Fatal(err)
	}
	for _, rules := range []string{"dR=*/*.pem", "dR=mnt/x", "aW=. dW=l/x", "dW=mnt/*.x aW=.", "aR=**/*.x dR=."} {
		end, err := mountStalled(mounted)
		if err != nil {
			t.Fatal(err)
		}
		in := input(t, "cwd="+filepath.Join(dir, "p")+" home=/nowhere "+rules)
		plan, err := BuildWithin(Host(), in, 300*time.Millisecond)
		var stall *StallError
		if !errors.As(err, &stall) || plan != nil || !strings.HasPrefix(stall.Path, mounted) {
			t.Errorf("%s: %v", rules, err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	// What does not look into it is not hindered.
	end, err := mountStalled(mounted)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := BuildWithin(Host(), input(t, "cwd="+filepath.Join(dir, "p")+" home=/nowhere dR=*.pem"), 0); err != nil {
		t.Errorf("a pattern that does not reach it: %v", err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
}
