package ns

import (
	"bytes"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// procCountsElsewhere tells whether this process's /proc is not of its own pid namespace, but of one around that: so it is in a
// sandbox in mode nested.
var procCountsElsewhere = sync.OnceValue(func() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self != strconv.Itoa(os.Getpid())
})

// procDir is the directory of a process of this one's pid namespace in /proc, with a slash behind it. Where /proc counts
// processes as another namespace does, a pidfd tells the number there (pidfd_open(2), "Pid:" in proc_pid_fdinfo(5)). Of a
// process that has ended it is a directory that does not exist.
func procDir(pid int) string {
	if procCountsElsewhere() {
		pid = numberInProc(pid)
	}
	return "/proc/" + strconv.Itoa(pid) + "/"
}

func numberInProc(pid int) int {
	const none = 0 // no process has this number
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return none
	}
	defer unix.Close(fd)
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return none
	}
	_, rest, _ := bytes.Cut(text, []byte("\nPid:"))
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	number, err := strconv.Atoi(string(bytes.TrimSpace(line)))
	if err != nil {
		return none
	}
	return number
}
