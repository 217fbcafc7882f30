package runtime

import (
	"os"
	"strconv"
	"strings"
)

// processName is the name of a process or thread of the host (proc_pid_comm(5)), for a report; empty if it is gone. Whoever has
// taken its number meanwhile is named in its place: a source that can name the process itself does so.
func processName(pid int) string {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(name), "\n")
}
