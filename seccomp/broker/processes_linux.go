package broker

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
)

// Where no fresh /proc can be mounted the sandbox shows the surrounding one, in which processes that are not of the sandbox have
// directories, hands and this process among them. Two things follow. /proc/self in a hand is the hand's, so that whatever is found
// in the directory of a process that is not of the sandbox is looked for once more by a walk, in which it is the caller's. And the
// opening of what is still another's is put to Config.Processes.

// surroundingProc tells whether the sandbox's /proc is the one around it. Where it cannot be told, it is taken for that.
func (c *call) surroundingProc() bool {
	outer, errno := c.s.outer.ask(c)
	return outer || errno != 0
}

// foreign tells whether what a descriptor leads to, at a location, belongs in the surrounding /proc to a process that is not of
// the sandbox.
func (c *call) foreign(fd int, where string) bool {
	if !c.surroundingProc() {
		return false
	}
	path, ok := c.procPath(fd, where)
	if !ok {
		return false
	}
	number, ok := fsview.ProcessOf(path)
	if !ok {
		return path == unknownProc
	}
	if process, thread, errno := c.numbers(); errno == 0 && (number == process || number == thread) {
		return false
	}
	return !c.s.owns(number)
}

// ownName is the name by which the surrounding /proc has what a command calls /proc/N: for the caller's own number in the sandbox,
// which programs put together from getpid(2) and gettid(2), the number there. Where a process of the sandbox has that number in
// /proc, it is what is meant.
func (c *call) ownName(dir int, name string) string {
	n, err := strconv.ParseUint(name, 10, 31)
	if err != nil || name[0] == '0' || !c.surroundingProc() || !c.isProcRoot(dir) {
		return name
	}
	process, thread, errno := c.numbers()
	switch {
	case errno != 0 || c.s.owns(int(n)):
		return name
	case int(n) == c.status.inner:
		return strconv.Itoa(process)
	case int(n) == c.status.innerThread:
		return strconv.Itoa(thread)
	}
	return name
}

// unknownProc stands for a path in a procfs that cannot be told.
const unknownProc = "?"

// procPath is where in a procfs the object lies. Where commands can mount nothing that is told by its location alone: further
// mounts of procfs are hidden from them (FS-47).
func (c *call) procPath(fd int, where string) (string, bool) {
	if !c.s.config.Roots {
		return strings.CutPrefix(where, "/proc/")
	}
	if fs, errno := c.fileSystem(fd); errno != 0 || fs.Type != unix.PROC_SUPER_MAGIC {
		return unknownProc, errno != 0
	}
	var i unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_INO|unix.STATX_MNT_ID, &i) != nil {
		return unknownProc, true
	}
	if i.Ino == procRootIno {
		return "", true
	}
	root, point, ok := c.mountOf(i.Mnt_id)
	rest, beneath := strings.CutPrefix(where, strings.TrimSuffix(point, "/"))
	if !ok || !beneath || rest != "" && rest[0] != '/' {
		return unknownProc, true
	}
	return strings.Trim(root+rest, "/"), true
}

// mountOf finds a mount in the caller's mount namespace: what of its file system it shows, and where (proc_pid_mountinfo(5)).
func (c *call) mountOf(id uint64) (root, point string, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(c.tid) + "/mountinfo")
	if err != nil || !c.waits() {
		return "", "", false // the number may have become another's
	}
	want := strconv.FormatUint(id, 10)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 4 && f[0] == want {
			return f[3], f[4], !strings.Contains(f[3]+f[4], `\`) // an escaped name is none that anything here is at
		}
	}
	return "", "", false
}

// judgeProcess judges the opening of an object that has been found, as far as it is a process's. again says that it is to be
// looked for by a walk, done that one of the two results counts.
func (c *call) judgeProcess(object int) (out outcome, again, done bool) {
	if !c.surroundingProc() {
		return out, false, false
	}
	where, err := c.where(object)
	if err != nil || !c.foreign(object, where) {
		return out, false, false
	}
	switch {
	case !c.walks:
		c.walks = true
		return out, true, true
	case c.s.config.Processes != nil && c.s.config.Processes.Process(false):
		return failed(unix.ENOENT), false, true
	}
	return out, false, false
}

// maxAncestors bounds a walk to the sandbox's pid 1. A chain of this length is taken to lead elsewhere.
const maxAncestors = 1 << 12

// owns tells whether a process of this process's /proc is of the sandbox: its pid 1, or a descendant of that. Whose parent ends
// becomes a child of another process of the same pid namespace, pid 1 in the end (pid_namespaces(7)), so that every process that
// the command made is one, those in pid namespaces of their own included. Somebody who entered the sandbox from outside is not.
func (s *Server) owns(number int) bool {
	init, self := s.config.Init, os.Getpid()
	child, err := openProcess(number)
	if err != nil {
		return false
	}
	defer func() { unix.Close(child) }()
	for range maxAncestors {
		switch {
		case init == 0:
			return false
		case number == init:
			return true
		case number <= 1, number == self:
			return false
		}
		next := parentOf(child)
		parent, err := openProcess(next)
		if err != nil {
			return false
		}
		// A process has one parent until that ends, and a number is nobody else's meanwhile: what was opened is the parent.
		if parentOf(child) != next {
			unix.Close(parent) // it has another by now
			continue
		}
		unix.Close(child)
		child, number = parent, next
	}
	return false
}

func openProcess(number int) (int, error) {
	return unix.Open("/proc/"+strconv.Itoa(number), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// parentOf is the parent of a process by its directory in /proc, -1 if that cannot be told: it has ended, or is hidden.
func parentOf(dir int) int {
	fd, err := unix.Openat(dir, "status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	defer unix.Close(fd)
	var buf [512]byte // the parent is among the first lines (proc_pid_status(5))
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return -1
	}
	_, rest, found := bytes.Cut(buf[:n], []byte("\nPPid:"))
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	parent := -1
	if !found || !number(bytes.TrimSpace(line), 10, &parent) {
		return -1
	}
	return parent
}
