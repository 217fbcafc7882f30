package container

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// homeMount is a volume of the user in every container: the workspace of a CI job.
	homeMount = "/builds"
	// patience bounds a container. It is no expectation about speed.
	patience = 2 * time.Minute
)

// engines are the programs that start containers, and the options of each: no cgroup manager where it can be had without.
var engines = map[string][]string{"runc": nil, "crun": {"--cgroup-manager=disabled"}}

var containers atomic.Int64

// container is a recipe made ready for one run.
type container struct {
	recipe recipe
	engine string
	as     account // inside
	bundle string
	root   string
	home   string        // homeMount's, outside
	limit  time.Duration // of a run
	echo   bool          // what it writes, on this process's standard output and error as well
}

// outcome is what a run gave.
type outcome struct {
	status         int
	stdout, stderr []byte
}

// newContainer mounts the root of a container and makes its home. Both end with the test.
func newContainer(t *testing.T, engine string, r recipe, as account) *container {
	t.Helper()
	c := &container{recipe: r, engine: engine, as: as, bundle: filepath.Join(scratch, strconv.FormatInt(containers.Add(1), 10)), limit: patience}
	c.root, c.home = filepath.Join(c.bundle, "root"), filepath.Join(c.bundle, "home")
	upper, work := filepath.Join(c.bundle, "upper"), filepath.Join(c.bundle, "work")
	for _, dir := range []string{c.bundle, c.root, c.home, upper, work, filepath.Join(upper, homeMount)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.RemoveAll(c.bundle) })
	if err := errors.Join(c.own(c.home, as.uid, as.gid), c.own(upper, 0, 0), c.own(filepath.Join(upper, homeMount), 0, 0)); err != nil {
		t.Fatal(err)
	}
	if r.noTmp {
		if err := unix.Mknod(filepath.Join(upper, "tmp"), unix.S_IFCHR, 0); err != nil { // a whiteout of overlayfs
			t.Fatal(err)
		}
	} else if err := c.emptyTmp(upper); err != nil {
		t.Fatal(err)
	}
	if err := c.addFiles(upper); err != nil {
		t.Fatal(err)
	}
	lower, err := lowerRoot(r.ids)
	if err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("lowerdir=%s:%s,upperdir=%s,workdir=%s", tools, lower, upper, work)
	if err := unix.Mount("overlay", c.root, "overlay", 0, options); err != nil {
		t.Fatalf("mount overlay (%s): %v", options, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(c.root, 0); err != nil {
			t.Errorf("unmount %s: %v", c.root, err)
		}
	})
	return c
}

// addFiles puts what the image has of its own into its uppermost layer: programs by their text, or links.
func (c *container) addFiles(upper string) error {
	for path, text := range c.recipe.files {
		at := filepath.Join(upper, path)
		if err := c.addParents(upper, filepath.Dir(path)); err != nil {
			return err
		}
		var err error
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(target, at)
		} else {
			err = os.WriteFile(at, []byte(text), 0o755)
		}
		if err = errors.Join(err, c.own(at, 0, 0)); err != nil {
			return err
		}
	}
	return nil
}

// addParents makes directories that root owns in the container.
func (c *container) addParents(upper, path string) error {
	if path == "/" {
		return nil
	}
	at := filepath.Join(upper, path)
	if err := c.addParents(upper, filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(at, 0o755); errors.Is(err, os.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return c.own(at, 0, 0)
}

// own gives a file to a user of the container.
func (c *container) own(path string, uid, gid int) error {
	return os.Lchown(path, c.recipe.ids.outsideID(uid), c.recipe.ids.outsideID(gid))
}

// emptyTmp hides what this machine has in /tmp.
func (c *container) emptyTmp(upper string) error {
	path := filepath.Join(upper, "tmp")
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	return errors.Join(c.own(path, 0, 0), os.Chmod(path, 0o777|os.ModeSticky), unix.Setxattr(path, "trusted.overlay.opaque", []byte("y"), 0))
}

// run starts the container with a process and waits for it.
func (c *container) run(t *testing.T, args, env []string) outcome {
	t.Helper()
	spec, err := c.recipe.spec(c.root, homeMount, c.as, args, env)
	if err != nil {
		t.Fatal(err)
	}
	for i := range spec.Mounts {
		if spec.Mounts[i].Source == "@home" {
			spec.Mounts[i].Source = c.home
		}
	}
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.bundle, "config.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(c.bundle, "state")
	ctx, cancel := context.WithTimeout(t.Context(), c.limit)
	defer cancel()
	name := prefix + filepath.Base(c.bundle) + "-" + os.Getenv(runVariable)
	words := append(append([]string{"--root", state}, engines[c.engine]...), "run", "--bundle", c.bundle, name)
	cmd := exec.CommandContext(ctx, c.engine, words...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &stdout, &stderr, c.bundle
	if c.echo {
		cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, os.Stdout), io.MultiWriter(&stderr, os.Stderr)
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.bundle, "XDG_RUNTIME_DIR=" + state}
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if c.recipe.ids.rootless() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(tester.uid), Gid: uint32(tester.gid)}}
		if err := os.Chown(state, tester.uid, tester.gid); err != nil {
			t.Fatal(err)
		}
	}
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", c.engine, err)
	}
	if ctx.Err() != nil {
		_ = exec.Command(c.engine, "--root", state, "delete", "--force", name).Run()
		t.Fatalf("%s did not end: %v\n%s", c.engine, ctx.Err(), stderr.Bytes())
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.Bytes(), stderr.Bytes()}
}

var (
	lowers   = map[identities]string{sameIDs: "/"}
	lowersMu sync.Mutex
)

// lowerRoot is this machine's root with the owners that a user namespace has: an idmapped mount where ids map (mount_setattr(2)).
func lowerRoot(ids identities) (string, error) {
	lowersMu.Lock()
	defer lowersMu.Unlock()
	if path, ok := lowers[ids]; ok {
		return path, nil
	}
	userns, err := userNamespace(ids)
	if err != nil {
		return "", err
	}
	defer userns.Close()
	tree, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("open_tree /: %w", err)
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(userns.Fd())}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return "", fmt.Errorf("map the owners of /: %w", err)
	}
	path := filepath.Join(scratch, "lower-"+strconv.Itoa(int(ids)))
	if err := os.Mkdir(path, 0o755); err != nil {
		return "", err
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return "", fmt.Errorf("move_mount: %w", err)
	}
	lowers[ids] = path
	return path, nil
}

// userNamespace makes one with the mappings of a container. Owners that are not mapped stay without a name there, as in an
// image that was unpacked with more ids than the container has.
func userNamespace(ids identities) (*os.File, error) {
	var maps []syscall.SysProcIDMap
	for _, m := range ids.mappings() {
		maps = append(maps, syscall.SysProcIDMap{ContainerID: int(m.ContainerID), HostID: int(m.HostID), Size: int(m.Size)})
	}
	cmd := exec.Command("sleep", "infinity")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: maps, GidMappings: maps, Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
}
