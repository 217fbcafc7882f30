package container

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	// roleVariable makes this binary something else than a test: what it is inside a container, or around it.
	roleVariable = "SRT_CONTAINER_ROLE"
	// binaryVariable names a finished srt; without it one is built.
	binaryVariable = "SRT_BINARY"
	// userVariable names the ordinary user who starts rootless containers.
	userVariable = "SRT_TEST_USER"
	defaultUser  = "srt-test"
	// runVariable tells the tests the number of the process around them, with which the names of their containers end.
	runVariable = "SRT_CONTAINER_RUN"
	// prefix begins the name of every container and control group that is made here.
	prefix = "srt-container-test-"
)

// roles are what roleVariable may say.
var roles = map[string]func() int{
	"inside":    inside,    // the first process of a container: looks at srt
	"sandboxed": sandboxed, // a command of srt: tries what it may and may not
	"bystander": bystander, // a process of the container that no command may touch
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role == "" {
		os.Exit(outside())
	} else if run, ok := roles[role]; ok {
		os.Exit(run())
	}
	code, err := prepareAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "container:", err)
		code = 1
	}
	os.Exit(code)
}

// outside runs this binary again in namespaces that end with it, and afterwards looks for what is left.
func outside() int {
	if os.Getuid() != 0 {
		fmt.Fprintf(os.Stderr, "skipped: containers are started by root, and this is uid %d\n", os.Getuid())
		return 0
	}
	runtime.LockOSThread() // the child ends with the thread that started it (PR_SET_PDEATHSIG)
	removeStale()
	before := traces()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), roleVariable+"=tests", runVariable+"="+strconv.Itoa(os.Getpid()))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID, Pdeathsig: unix.SIGKILL}
	err := cmd.Run()
	left := slices.DeleteFunc(traces(), func(t string) bool { return slices.Contains(before, t) })
	for _, trace := range left {
		fmt.Fprintln(os.Stderr, "container: left behind:", trace)
		_ = os.Remove(trace) // a control group without processes; nothing else can be removed so
	}
	switch {
	case cmd.ProcessState == nil:
		fmt.Fprintf(os.Stderr, "container: cannot make mount and pid namespaces, and so no containers: %v\n", err)
		return 1
	case cmd.ProcessState.ExitCode() == 0 && len(left) != 0:
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// traces are what containers could leave: mounts of this namespace, control groups, states of the runtimes, files in /tmp.
func traces() []string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, prefix) || strings.Contains(line, " "+scratchPath+" ") || strings.Contains(line, " "+scratchPath+"/") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return append(found, groups("*-"+strconv.Itoa(os.Getpid()))...)
}

// groups are the control groups, states of runtimes and temporary files of containers.
func groups(name string) []string {
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/", "/sys/fs/cgroup/*/*/",
		"/sys/fs/cgroup/*/*/*/", "/run/*/", "/tmp/"} {
		paths, err := filepath.Glob(pattern + prefix + name)
		if err != nil {
			return []string{err.Error()}
		}
		found = append(found, paths...)
	}
	return found
}

// removeStale removes the control groups of runs that were killed, SIGKILL included: their processes and mounts ended with them.
func removeStale() {
	for _, path := range groups("*") {
		if _, err := os.Stat("/proc/" + path[strings.LastIndexByte(path, '-')+1:]); errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(path)
		}
	}
}

// Set once by prepareAndRun.
var (
	scratch string // on a file system in memory of this namespace; every user may pass
	tools   string // a layer of every root: srt and this binary, at toolPath
	tester  account
	// testerName is tester's.
	testerName string
)

// scratchPath is where scratch is mounted.
const scratchPath = "/mnt"

// toolPath is where srt and this binary lie in a container.
const toolPath = "/usr/local/lib/srt-test"

// account is a user by number.
type account struct{ uid, gid int }

func prepareAndRun(m *testing.M) (int, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return 0, fmt.Errorf("cut propagation: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return 0, fmt.Errorf("mount /proc: %w", err)
	}
	if err := unifyGroups(); err != nil {
		return 0, err
	}
	for _, program := range []string{"runc", "crun", "newuidmap"} {
		if _, err := exec.LookPath(program); err != nil {
			return 0, fmt.Errorf("%w; make test-prepare installs it", err)
		}
	}
	var err error
	if tester, err = findTester(); err != nil {
		return 0, err
	}
	// Nobody outside of this namespace sees what is mounted over /mnt.
	scratch = scratchPath
	if err := unix.Mount("scratch", scratch, "tmpfs", unix.MS_NODEV, "mode=755"); err != nil {
		return 0, fmt.Errorf("mount %s: %w", scratch, err)
	}
	if err := errors.Join(installTools(), installNetworkFiles()); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// unifyGroups shows this namespace control groups of version 2 alone. Machines that have both kinds exist, and crun starts
// nothing there.
func unifyGroups() error {
	const at = "/sys/fs/cgroup"
	if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", at, err)
	}
	if err := unix.Mount("cgroup2", at, "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", at, err)
	}
	return nil
}

// findTester is the ordinary user.
func findTester() (account, error) {
	if testerName = os.Getenv(userVariable); testerName == "" {
		testerName = defaultUser
	}
	u, err := user.Lookup(testerName)
	if err != nil {
		return account{}, fmt.Errorf("%w; make test-prepare makes %s", err, defaultUser)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return account{}, err
	}
	gid, err := strconv.Atoi(u.Gid)
	return account{uid, gid}, err
}

// installTools puts srt and this binary into a layer of their own.
func installTools() error {
	tools = filepath.Join(scratch, "tools")
	dir, bin := filepath.Join(tools, toolPath), filepath.Join(tools, "/usr/local/bin")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.MkdirAll(bin, 0o755), os.Symlink(toolPath+"/srt", filepath.Join(bin, "srt"))); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := copyProgram(filepath.Join(dir, "inside"), self); err != nil {
		return err
	}
	if given := os.Getenv(binaryVariable); given != "" {
		return copyProgram(filepath.Join(dir, "srt"), given)
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "srt"), "github.com/srt-sandbox/srt/cmd/srt")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// installNetworkFiles makes what Docker gives each container of its own in /etc.
func installNetworkFiles() error {
	dir := filepath.Join(scratch, "etc")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{"hosts": "127.0.0.1 localhost\n::1 localhost\n", "hostname": "container\n", "resolv.conf": "nameserver 127.0.0.11\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func copyProgram(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}
