package container

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// report is what the first process of a container says on its standard output.
type report struct {
	// CheckStatus and Check are what srt check --json said; the status tells the mode.
	CheckStatus int
	Check       string
	// Strict and Weaker are what happened without and with enableWeakerNestedSandbox.
	Strict, Weaker trial
}

// trial is what became of the promises under one settings file.
type trial struct {
	// Refused is what srt said when it started no command; then there is nothing else.
	Refused string
	// Broken are the promises that did not hold, a sentence each.
	Broken []string
}

// Names in homeMount.
const (
	workspace = homeMount + "/work"
	elsewhere = homeMount + "/elsewhere"
	secret    = homeMount + "/secret/key"
	secretSay = "the-secret-of-the-file"
	// bystanderSay is in the environment and in the arguments of the bystander.
	bystanderSay = "the-secret-of-the-bystander"
	abstractName = "@srt-container-test"
)

// inside is the first process of a container.
func inside() int {
	w, err := newWorld()
	if err != nil {
		fmt.Fprintln(os.Stderr, "inside:", err)
		return 1
	}
	defer w.close()
	var r report
	r.CheckStatus, r.Check = w.check()
	r.Strict = w.try(false)
	r.Weaker = w.try(true)
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return 1
	}
	return 0
}

// world is what surrounds a command of srt in the container.
type world struct {
	allowed, denied string // addresses of servers
	hits            atomic.Int64
	abstract        net.Listener
	udp             net.PacketConn
	packets         atomic.Int64
	calls           atomic.Int64 // on the abstract socket
	bystander       *exec.Cmd
	stdin           io.Closer // of the bystander, which ends with it
	weaker          bool      // the settings file says so
}

func newWorld() (*world, error) {
	w := &world{}
	for _, dir := range []string{workspace + "/.git/hooks", workspace + "/.git/objects", workspace + "/.git/refs", elsewhere, filepath.Dir(secret)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	for path, text := range map[string]string{secret: secretSay, workspace + "/.git/HEAD": "ref: refs/heads/main\n", elsewhere + "/file": "as it was\n",
		elsewhere + "/removed": "", elsewhere + "/renamed": ""} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.Chdir(workspace); err != nil {
		return nil, err
	}
	return w, errors.Join(w.listen(), w.startBystander())
}

func (w *world) listen() error {
	serve := func(h http.HandlerFunc) (string, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		go func() { _ = http.Serve(l, h) }()
		return l.Addr().String(), nil
	}
	var errs [4]error
	w.allowed, errs[0] = serve(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "hello") })
	w.denied, errs[1] = serve(func(http.ResponseWriter, *http.Request) { w.hits.Add(1) })
	if w.abstract, errs[2] = net.Listen("unix", abstractName); errs[2] == nil {
		go func() {
			for conn, err := w.abstract.Accept(); err == nil; conn, err = w.abstract.Accept() {
				w.calls.Add(1)
				conn.Close()
			}
		}()
	}
	if w.udp, errs[3] = net.ListenPacket("udp", "127.0.0.1:0"); errs[3] == nil {
		go func() {
			for _, _, err := w.udp.ReadFrom(make([]byte, 16)); err == nil; _, _, err = w.udp.ReadFrom(make([]byte, 16)) {
				w.packets.Add(1)
			}
		}()
	}
	return errors.Join(errs[:]...)
}

// startBystander starts a process of the same user.
func (w *world) startBystander() error {
	w.bystander = exec.Command(toolPath+"/inside", bystanderSay)
	w.bystander.Env = []string{roleVariable + "=bystander", "TOKEN=" + bystanderSay}
	in, err := w.bystander.StdinPipe()
	if err != nil {
		return err
	}
	w.stdin = in
	return w.bystander.Start()
}

// bystander waits for the end of its standard input.
func bystander() int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func (w *world) close() {
	w.stdin.Close()
	_ = w.bystander.Wait()
}

func (w *world) check() (int, string) {
	cmd := exec.Command(toolPath+"/srt", "check", "--json")
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// srt runs a command under the settings file and gives its status and what it wrote.
func (w *world) srt(words ...string) (int, []byte, []byte) {
	cmd := exec.Command(toolPath+"/srt", append([]string{"-s", homeMount + "/settings.json", "exec", "--"}, words...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	task, err := json.Marshal(w.task())
	if err != nil {
		panic(err)
	}
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, roleVariable+"=") }),
		roleVariable+"=sandboxed", taskVariable+"="+string(task))
	cmd.WaitDelay = time.Second // for what a command that should be dead by then keeps open
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), stdout.Bytes(), stderr.Bytes()
}

func (w *world) task() task {
	return task{Allowed: port(w.allowed), Denied: port(w.denied), UDP: w.udp.LocalAddr().String(), Bystander: w.bystander.Process.Pid, Weaker: w.weaker}
}

func port(address string) string {
	_, p, _ := net.SplitHostPort(address)
	return p
}

// settings writes the settings file.
func (w *world) settings(weaker bool) error {
	w.weaker = weaker
	text, err := json.Marshal(map[string]any{
		"network":                   map[string]any{"allowedDomains": []string{"localhost:" + port(w.allowed)}, "deniedDomains": []string{}},
		"filesystem":                map[string]any{"denyRead": []string{filepath.Dir(secret)}, "allowWrite": []string{"."}, "denyWrite": []string{}},
		"enableWeakerNestedSandbox": weaker,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(homeMount+"/settings.json", text, 0o644)
}

// try holds the promises against what happens.
func (w *world) try(weaker bool) (result trial) {
	broken := func(format string, args ...any) { result.Broken = append(result.Broken, fmt.Sprintf(format, args...)) }
	if err := w.settings(weaker); err != nil {
		broken("%v", err)
		return result
	}
	before := w.files()
	status, stdout, stderr := w.srt(toolPath + "/inside")
	if !bytes.Contains(stdout, []byte(started)) {
		if status == 0 {
			broken("no command ran, and srt exited with 0")
		}
		result.Refused = strings.TrimSpace(string(stderr))
		if result.Refused == "" {
			broken("no command ran, and nothing says why; status %d", status)
		}
	} else {
		w.judge(stdout, stderr, broken)
		w.endings(broken)
	}
	now := w.files()
	if made, gone := without(now, before), without(before, now); len(made)+len(gone) != 0 {
		broken("files are left: %q; files are gone: %q", made, gone)
	}
	if others := w.others(); len(others) != 0 {
		broken("processes are left: %q", others)
	}
	return result
}

// judge looks at what the command says, and at what it has changed.
func (w *world) judge(stdout, stderr []byte, broken func(string, ...any)) {
	_, said, _ := bytes.Cut(stdout, []byte(started))
	var failed []string
	if err := json.Unmarshal(said, &failed); err != nil {
		broken("the command said %q, %q: %v", stdout, stderr, err)
	}
	for _, f := range failed {
		broken("in the sandbox: %s", f)
	}
	if text, err := os.ReadFile(workspace + "/made"); err != nil || string(text) != "made" {
		broken("what the command wrote is %q, %v", text, err)
	}
	_ = os.Remove(workspace + "/made")
	if text, err := os.ReadFile(elsewhere + "/file"); err != nil || string(text) != "as it was\n" {
		broken("a file that is not writable is %q, %v", text, err)
	}
	for name, n := range map[string]*atomic.Int64{"requests reached the denied server": &w.hits, "calls reached the abstract socket": &w.calls, "datagrams arrived": &w.packets} {
		if n.Load() != 0 {
			broken("%d %s", n.Swap(0), name)
		}
	}
	// One that was killed stays as a zombie until the end of this process (proc_pid_stat(5)).
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.bystander.Process.Pid)); err != nil || bytes.Contains(stat, []byte(") Z ")) {
		broken("the bystander is gone: %s %v", stat, err)
	}
}

// endings looks at exit statuses, and at what outlives a command.
func (w *world) endings(broken func(string, ...any)) {
	for script, want := range map[string]int{"exit 7": 7, "kill -TERM $$": 128 + 15, "setsid sleep 311 & exit 0": 0} {
		if status, _, stderr := w.srt("sh", "-c", script); status != want {
			broken("sh -c %q ended with %d, not %d: %s", script, status, want, stderr)
		}
	}
}

// files are the names that srt could leave something among.
func (w *world) files() []string {
	var names []string
	for _, root := range []string{homeMount, "/tmp", "/dev/shm", "/run"} {
		_ = filepath.WalkDir(root, func(path string, _ os.DirEntry, _ error) error {
			if path != "/tmp/claude" { // the directory for temporary files, which stays (settings.md, default write paths)
				names = append(names, path)
			}
			return nil
		})
	}
	return names
}

// without gives the names of one list that are not in another.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(other, name) })
}

// others are the processes of the container beside this one and the bystander.
func (w *world) others() []string {
	var found []string
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || pid == w.bystander.Process.Pid {
			continue
		}
		name, err := os.ReadFile("/proc/" + e.Name() + "/comm")
		if err == nil {
			found = append(found, e.Name()+" "+strings.TrimSpace(string(name)))
		}
	}
	return found
}
