package container

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// taskVariable has the task of the command in the sandbox, as JSON.
	taskVariable = "SRT_CONTAINER_TASK"
	// started begins what it says.
	started = "started\n"
)

// task is what the command in the sandbox has to know.
type task struct {
	Allowed, Denied string // ports of the servers on the container's loopback
	UDP             string
	Bystander       int
	Weaker          bool // enableWeakerNestedSandbox: other processes may be seen, if not read
}

// sandboxed is a command of srt. It says which promises do not hold as a JSON list, and then sends the signals it may not.
func sandboxed() int {
	fmt.Print(started)
	var t task
	if err := json.Unmarshal([]byte(os.Getenv(taskVariable)), &t); err != nil {
		fmt.Println(err)
		return 1
	}
	failed := []string{}
	for _, p := range promises {
		if text := p(t); text != "" {
			failed = append(failed, text)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(failed); err != nil {
		return 1
	}
	// The number may be one of this very sandbox's, in a pid namespace of its own; all has been said by now.
	_ = unix.Kill(-1, unix.SIGKILL)
	_ = unix.Kill(t.Bystander, unix.SIGKILL)
	return 0
}

// promises give a text where one does not hold.
var promises = []func(task) string{
	func(task) string {
		return unless("write into the workspace", os.WriteFile("made", []byte("made"), 0o644))
	},
	func(task) string {
		return despite("change a file elsewhere", os.WriteFile(elsewhere+"/file", []byte("changed"), 0o644))
	},
	func(task) string { return despite("make a file elsewhere", os.WriteFile(elsewhere+"/new", nil, 0o644)) },
	func(task) string { return despite("remove a file elsewhere", os.Remove(elsewhere+"/removed")) },
	func(task) string {
		return despite("rename a file elsewhere", os.Rename(elsewhere+"/renamed", elsewhere+"/renamed2"))
	},
	func(task) string { return despite("chmod a file elsewhere", os.Chmod(elsewhere+"/file", 0o777)) },
	func(task) string {
		return despite("make a hook of git", os.WriteFile(".git/hooks/pre-commit", nil, 0o755))
	},
	func(task) string { return despite("make .bashrc", os.WriteFile(".bashrc", nil, 0o644)) },
	func(task) string { return despite("make .vscode", os.Mkdir(".vscode", 0o755)) },
	readsNoSecret,
	func(t task) string { return reaches(t.Allowed, http.StatusOK) },
	func(t task) string { return reaches(t.Denied, http.StatusForbidden) },
	connectsNowhere,
	seesNobody,
	func(task) string {
		return despite("write to /proc/sys", os.WriteFile("/proc/sys/kernel/hostname", []byte("x"), 0))
	},
	func(task) string { return despite("mount", unix.Mount("none", workspace, "tmpfs", 0, "")) },
}

// unless is for what must succeed.
func unless(what string, err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%s: %v", what, err)
}

// despite is for what must fail.
func despite(what string, err error) string {
	if err != nil {
		return ""
	}
	return what + ": it succeeded"
}

func readsNoSecret(task) string {
	text, _ := os.ReadFile(secret)
	if bytes.Contains(text, []byte(secretSay)) {
		return "a file that is denied can be read"
	}
	return ""
}

// reaches asks the proxy of the environment for a port of the container's loopback.
func reaches(port string, want int) string {
	proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
	if err != nil || proxy.Host == "" {
		return fmt.Sprintf("HTTP_PROXY is %q", os.Getenv("HTTP_PROXY"))
	}
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	answer, err := client.Get("http://localhost:" + port + "/")
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	if answer.StatusCode != want {
		body, _ := io.ReadAll(answer.Body)
		return fmt.Sprintf("port %s answers %s, not %d: %s", port, answer.Status, want, body)
	}
	return ""
}

// connectsNowhere tries without the proxy. What counts for the servers is judged outside of the sandbox.
func connectsNowhere(t task) string {
	var reached []string
	for _, to := range [][2]string{{"tcp", "127.0.0.1:" + t.Denied}, {"unix", abstractName}} {
		if conn, err := net.Dial(to[0], to[1]); err == nil {
			conn.Close()
			reached = append(reached, "connected to "+to[1])
		}
	}
	if conn, err := net.Dial("udp", t.UDP); err == nil {
		_, _ = conn.Write([]byte("x"))
		conn.Close()
	}
	return strings.Join(reached, ", ")
}

// seesNobody reads what it can of every process.
func seesNobody(t task) string {
	names := []string{"environ"}
	if !t.Weaker {
		names = append(names, "cmdline")
	}
	for _, name := range names {
		paths, err := filepath.Glob("/proc/[0-9]*/" + name)
		if err != nil || len(paths) == 0 {
			return fmt.Sprintf("%d processes, %v", len(paths), err)
		}
		for _, path := range append(paths, "/proc/"+strconv.Itoa(t.Bystander)+"/"+name) {
			text, _ := os.ReadFile(path)
			if bytes.Contains(text, []byte(bystanderSay)) {
				return path + " is another process's"
			}
		}
	}
	return ""
}
