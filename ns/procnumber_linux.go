package ns

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
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
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return noProcess
	}
	defer unix.Close(fd)
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd)) //nolint:gosec // the name is a number of this process's own
	if err != nil {
		return searchProc(pid) // a broker that performs the opening may look into nobody's descriptors
	}
	if number, err := strconv.Atoi(field(text, "Pid")); err == nil {
		return number
	}
	return noProcess
}

// noProcess is the number of no process.
const noProcess = 0

// field is what a line of a file of /proc says.
func field(text []byte, name string) string {
	_, rest, _ := bytes.Cut(text, []byte("\n"+name+":"))
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	return string(bytes.TrimSpace(line))
}

// searchProc looks for a child of this process by its numbers in all pid namespaces from that of /proc on ("NSpid:" in
// proc_pid_status(5)), of which this process has one at as many places as it has namespaces.
func searchProc(pid int) int {
	own, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return noProcess
	}
	at := len(strings.Fields(field(own, "NSpid"))) - 1
	entries, err := os.ReadDir("/proc")
	if err != nil || at < 0 {
		return noProcess
	}
	for _, e := range slices.Backward(entries) { // the latest are the last
		number, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/status")
		if err != nil || field(text, "PPid") != field(own, "Pid") {
			continue
		}
		if list := strings.Fields(field(text, "NSpid")); at < len(list) && list[at] == strconv.Itoa(pid) {
			return number
		}
	}
	return noProcess
}
