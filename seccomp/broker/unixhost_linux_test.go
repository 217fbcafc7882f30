package broker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	probes["unix-host"] = func(string) any { return hostSocketsProbe() }
	probes["unix-race"] = func(string) any { return raceProbe() }
	probes["unix-reuse"] = func(string) any { return reuseProbe() }
}

// hostSocket is a socket of the host that a test listens on.
type hostSocket struct {
	listener *net.UnixListener
	reached  atomic.Int64
}

// listenOutside makes a socket of the host, which answers with its name's last component. It ends with the test.
func listenOutside(t *testing.T, path string) *hostSocket {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	h := &hostSocket{listener: l}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.reached.Add(1)
			c.Write([]byte(filepath.Base(path)))
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return h
}

// reachUnix connects to a path and gives what the peer says, or the error.
func reachUnix(path string) string {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		var errno unix.Errno
		if errors.As(err, &errno) {
			return unix.ErrnoName(errno)
		}
		return err.Error()
	}
	return hearUnix(fd)
}

// reachUnixRaw is reachUnix for an address in memory that may change.
func reachUnixRaw(address []byte) string {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	defer unix.Close(fd)
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), pointerOf(&address[0]), uintptr(len(address)))
	runtime.KeepAlive(address)
	if errno != 0 {
		return unix.ErrnoName(errno)
	}
	return hearUnix(fd)
}

// hearUnix gives what the peer of a socket says.
func hearUnix(fd int) string {
	buf := make([]byte, 100)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return "connected, but " + err.Error()
	}
	return "reached " + string(buf[:n])
}

// hostSocketsProbe tries to reach sockets of the host by the paths that its standard input lists.
func hostSocketsProbe() map[string]string {
	var paths []string
	result := map[string]string{}
	if err := json.NewDecoder(os.Stdin).Decode(&paths); err != nil {
		result["setup"] = err.Error()
	}
	os.Symlink("denied", "to-denied")
	os.Symlink("allowed", "to-allowed")
	os.Mkdir("mine", 0o755)
	os.Link("denied", "mine/linked")
	os.Link("twice", "open/twice")
	for _, path := range paths {
		result[path] = reachUnix(path)
	}
	if fd, err := unix.Open("denied", unix.O_PATH, 0); err == nil {
		result["by a descriptor"] = reachUnix(fmt.Sprintf("/proc/self/fd/%d", fd))
	}
	if fd, err := unix.Open("allowed", unix.O_PATH, 0); err == nil {
		result["allowed, by a descriptor"] = reachUnix(fmt.Sprintf("/proc/self/fd/%d", fd))
	}
	if err := os.Rename("moved", "mine/moved"); err != nil {
		result["setup"] = err.Error()
	}
	result["moved"] = reachUnix("mine/moved")
	return result
}

// input is a file with v in it, to be read from the start.
func input(t *testing.T, v any) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := json.NewEncoder(f).Encode(v); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestUnix_HostSocketsByLocation has the sandbox connect to sockets of the host.
func TestUnix_HostSocketsByLocation_NET80(t *testing.T) {
	paths := []string{"denied", "allowed", "to-denied", "to-allowed", "./mine/../denied", "open/inner", "open/../denied", "mine/linked", "open/twice", "unserved",
		"/proc/self/cwd/denied", "/proc/self/cwd/allowed"}
	refused := map[string]string{"denied": "EACCES", "to-denied": "EACCES", "./mine/../denied": "EACCES", "open/../denied": "EACCES", "mine/linked": "EACCES",
		"/proc/self/cwd/denied": "EACCES", "by a descriptor": "EACCES", "moved": "EACCES", "allowed": "EACCES", "to-allowed": "EACCES",
		"/proc/self/cwd/allowed": "EACCES", "allowed, by a descriptor": "EACCES", "open/inner": "EACCES", "open/twice": "EACCES", "unserved": "EACCES"}
	some := map[string]string{"allowed": "reached allowed", "to-allowed": "reached allowed", "/proc/self/cwd/allowed": "reached allowed",
		"allowed, by a descriptor": "reached allowed", "open/inner": "reached inner", "unserved": "ECONNREFUSED"}
	all := map[string]string{"denied": "reached denied", "to-denied": "reached denied", "./mine/../denied": "reached denied", "open/../denied": "reached denied",
		"mine/linked": "reached denied", "/proc/self/cwd/denied": "reached denied", "by a descriptor": "reached denied", "moved": "reached moved",
		"open/twice": "reached twice"}
	for _, c := range []struct {
		name  string
		rules func(folder string) UnixRules
		want  []map[string]string
	}{
		{"zero value", func(string) UnixRules { return UnixRules{} }, []map[string]string{refused}},
		{"some", func(folder string) UnixRules {
			return UnixRules{Allowed: func(at string, _, _ uint64) bool {
				return at == folder+"/allowed" || at == folder+"/unserved" || strings.HasPrefix(at, folder+"/open/")
			}}
		}, []map[string]string{refused, some}},
		{"all", func(string) UnixRules { return UnixRules{All: true} }, []map[string]string{refused, some, all}},
	} {
		for _, roots := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " roots ", roots), func(t *testing.T) {
				folder := tempFolder(t)
				if err := os.Mkdir(folder+"/open", 0o755); err != nil {
					t.Fatal(err)
				}
				sockets := map[string]*hostSocket{}
				for _, name := range []string{"denied", "allowed", "moved", "twice", "open/inner", "unserved"} {
					sockets[name] = listenOutside(t, folder+"/"+name)
				}
				sockets["unserved"].listener.Close()
				var got map[string]string
				b := startSandbox(t, setup{judge: &testJudge{}, filter: connects, probe: "unix-host", folder: folder, stdin: input(t, paths),
					mutate: func(config *Config) { config.Unix, config.Roots = c.rules(folder), roots }})
				denials := b.finishWith(t, &got)
				want := map[string]string{}
				for _, m := range c.want {
					for path, outcome := range m {
						want[path] = outcome
					}
				}
				refusals := 0
				for path, outcome := range want {
					if got[path] != outcome {
						t.Errorf("%s: %s, want %s", path, got[path], outcome)
					}
					if outcome == "EACCES" {
						refusals++
					}
				}
				if got["setup"] != "" {
					t.Error(got["setup"])
				}
				if len(denials) != refusals {
					t.Errorf("%d reports, want %d", len(denials), refusals)
				}
				for _, d := range denials {
					if d.Call != "connect" || d.Err != nil || !strings.HasPrefix(d.Path, folder+"/") || !strings.HasPrefix(d.Why, "network.allowUnixSockets ") || d.PID == 0 {
						t.Errorf("reported %+v", d)
					}
				}
				if n := sockets["denied"].reached.Load(); c.name != "all" && n != 0 {
					t.Errorf("the denied socket was reached %d times", n)
				}
			})
		}
	}
}

// raceProbe connects again and again while another thread swaps the name between a socket of its own and the host's, and a
// third one rewrites the address. It gives who answered.
func raceProbe() map[string]int {
	own, err := net.Listen("unix", "own")
	if err != nil {
		return map[string]int{err.Error(): 1}
	}
	go func() {
		for {
			c, err := own.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("own"))
			c.Close()
		}
	}()
	if err := os.Link("own", "swapped"); err != nil {
		return map[string]int{err.Error(): 1}
	}
	if err := os.Rename("host", "other"); err != nil {
		return map[string]int{err.Error(): 1}
	}
	stop := make(chan struct{})
	swaps := make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				swaps <- n
				return
			default:
			}
			// By link swap, which no call in between can find missing.
			unix.Renameat2(unix.AT_FDCWD, "swapped", unix.AT_FDCWD, "other", unix.RENAME_EXCHANGE)
			n++
		}
	}()
	result := map[string]int{}
	address := append([]byte{unix.AF_UNIX, 0}, "swapped\x00"...)
	rewritten := make(chan struct{})
	go func() {
		defer close(rewritten)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := "swapped"
			if i%2 == 0 {
				name = "other\x00\x00"
			}
			copy(address[2:], name)
			runtime.Gosched()
		}
	}()
	for range 3000 {
		result[reachUnixRaw(address)]++
	}
	close(stop)
	result["swaps"] = <-swaps
	<-rewritten
	return result
}

// TestUnix_NamesThatChangeAreNeverReached swaps names and addresses during the call.
func TestUnix_NamesThatChangeAreNeverReached_NET80(t *testing.T) {
	folder := tempFolder(t)
	host := listenOutside(t, folder+"/host")
	var got map[string]int
	b := startSandbox(t, setup{judge: &testJudge{}, filter: connects, probe: "unix-race", folder: folder})
	for _, d := range b.finishWith(t, &got) {
		if d.Err != nil {
			t.Errorf("%+v", d)
		}
	}
	t.Log(got)
	if host.reached.Load() != 0 || got["reached host"] != 0 {
		t.Errorf("the host's socket was reached: %v", got)
	}
	if got["reached own"] == 0 || got["EACCES"] == 0 || got["swaps"] == 0 {
		t.Errorf("nothing was raced: %v", got)
	}
	for answer := range got {
		if !slices.Contains([]string{"reached own", "EACCES", "swaps", "ENOENT"}, answer) {
			t.Errorf("%q", answer)
		}
	}
}

// reuseProbe binds a socket and removes its file, and tries what the host has bound by then, when it is told to.
func reuseProbe() map[string]string {
	result := map[string]string{}
	for range 64 {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrUnix{Name: "mine"})
		}
		if err = cmp.Or(err, os.Remove("mine"), unix.Close(fd)); err != nil {
			result["setup"] = err.Error()
		}
	}
	os.Stdout.WriteString("\n")
	var names []string
	if err := json.NewDecoder(os.Stdin).Decode(&names); err != nil {
		result["setup"] = err.Error()
	}
	for _, name := range names {
		result[name] = reachUnix(name)
	}
	return result
}

// TestUnix_InodesAreNotTakenOver has the host bind sockets after the sandbox has removed those of its own: a file system
// gives free inode numbers again.
func TestUnix_InodesAreNotTakenOver_NET80(t *testing.T) {
	for name, folder := range map[string]string{"disk": tempFolder(t), "memory": memoryFolder(t)} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			b := startSandbox(t, setup{judge: &testJudge{}, filter: connects, probe: "unix-reuse", folder: folder, stdin: r})
			if _, err := b.out.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			var names []string
			for i := range 64 {
				name := fmt.Sprintf("host%d", i)
				listenOutside(t, filepath.Join(folder, name))
				names = append(names, name)
			}
			if err := json.NewEncoder(w).Encode(names); err != nil {
				t.Fatal(err)
			}
			w.Close()
			var got map[string]string
			for _, d := range b.finishWith(t, &got) {
				if d.Err != nil {
					t.Errorf("%+v", d)
				}
			}
			if len(got) != len(names) {
				t.Errorf("%v", got)
			}
			for name, outcome := range got {
				if outcome != "EACCES" {
					t.Errorf("%s: %s", name, outcome)
				}
			}
		})
	}
}
