package test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// plants are values that no sandbox may hold. Each is in one place of the host that srt reads.
type plants struct{ variable, denied, file, captured string }

func (p plants) all() []string { return []string{p.variable, p.denied, p.file, p.captured} }

// plant puts them there and gives settings that keep them from commands, for requests to a host.
func (b *box) plant(host string) (plants, cfg) {
	b.t.Helper()
	p := plants{"planted-variable-" + b.mark, "planted-denied-" + b.mark, "planted-file-" + b.mark, "planted-captured-" + b.mark}
	b.env = append(b.env, "TOKEN="+p.variable, "DENIED="+p.denied)
	b.file("token", p.file+"\n")
	b.file(".netrc", "machine x password "+p.captured+"\n")
	return p, cfg{aw: list{"."}, allow: list{host}, net: ends(nil), top: masks(object{
		"envVars": list{object{"name": "TOKEN"}, object{"name": "DENIED", "mode": "deny"}},
		"files":   list{object{"path": "token"}, object{"path": ".netrc", "extract": `password (\S+)`}}})}
}

// family is a process and all that came from it.
func family(t *testing.T, root int) []int {
	t.Helper()
	found := []int{root}
	parents := map[int]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue // gone
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		parents[pid], _ = strconv.Atoi(string(fields[1]))
	}
	for i := 0; i < len(found); i++ {
		for pid, parent := range parents {
			if parent == found[i] && !slices.Contains(found, pid) {
				found = append(found, pid)
			}
		}
	}
	return found
}

// holdings searches all that root can see of a process for texts: arguments, environment, every byte of its memory, and the
// files behind its descriptors and mappings, deleted ones included. It tells where each was found.
func holdings(t *testing.T, pid int, texts []string) (found []string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d", pid)
	in := func(where string, data []byte) {
		for _, text := range texts {
			if bytes.Contains(data, []byte(text)) {
				found = append(found, fmt.Sprintf("%q in %s", text, where))
			}
		}
	}
	for _, name := range []string{"cmdline", "environ", "comm", "status", "maps"} {
		if data, err := os.ReadFile(dir + "/" + name); err == nil {
			in(name, data)
		}
	}
	files, _ := filepath.Glob(dir + "/fd/*")
	mapped, _ := filepath.Glob(dir + "/map_files/*")
	for _, path := range append(files, mapped...) {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 64<<20 {
			continue
		}
		if f, err := os.Open(path); err == nil {
			data, _ := io.ReadAll(f)
			f.Close()
			target, _ := os.Readlink(path)
			in(path+" ("+target+")", data)
		}
	}
	maps, err := os.ReadFile(dir + "/maps")
	if err != nil {
		return found
	}
	mem, err := os.Open(dir + "/mem")
	if err != nil {
		t.Fatalf("the memory of %d: %v", pid, err)
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		var start, end uint64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &start, &end, &mode); n != 3 || mode[0] != 'r' {
			continue
		}
		in("memory "+strings.TrimSpace(line), readable(mem, start, end))
	}
	return found
}

// readable is what can be read of a range of memory. Whole pages of it may be missing, and hold nothing then.
func readable(mem *os.File, start, end uint64) []byte {
	var all []byte
	const chunk = 1 << 20
	for at := start; at < end; at += chunk {
		part := make([]byte, min(chunk, end-at))
		n, err := mem.ReadAt(part, int64(at))
		if err != nil && !errors.Is(err, io.EOF) && n == 0 {
			part = nil
		}
		all = append(all, part...)
	}
	return all
}

// CRED-35: while a command runs, no process but srt's own holds a value: not the command, not pid 1, which is a copy of srt, and
// not the helpers that make system calls for it.
func TestCRED_35_NothingInTheSandbox(t *testing.T) {
	need(t, "curl")
	if os.Getuid() != 0 {
		t.Skipf("needs uid 0, have %d; the run as root covers it", os.Getuid())
	}
	each(t, func(t *testing.T, b *box) {
		web, _ := b.secure()
		p, c := b.plant("localhost:" + web.port)
		c.dw = list{"never/made"} // absent: judged by helpers
		cmd := b.command(b.srt(c, "sh", "-c", byProxy+`for i in 1 2 3; do curl -fsS -H "A: $TOKEN" -H "B: $(cat token)" -H "C: $(cat .netrc)" https://localhost:`+
			web.port+`/; done >out; mkdir never; (sleep 60 & touch ready; wait)`)...)
		wait := b.start(cmd)
		b.appears("ready")
		got := web.requests()
		if len(got) != 3 || got[0].Header.Get("A") != p.variable || got[0].Header.Get("B") != p.file || !strings.Contains(got[0].Header.Get("C"), p.captured) {
			t.Errorf("what arrived: %v", got)
		}
		pids := family(t, cmd.Process.Pid)
		if len(pids) < 4 {
			t.Errorf("only %d processes: this test shows little", len(pids))
		}
		for _, pid := range pids[1:] {
			comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			for _, f := range holdings(t, pid, p.all()) {
				t.Errorf("%d (%s): %s", pid, bytes.TrimSpace(comm), f)
			}
		}
		if found := holdings(t, cmd.Process.Pid, []string{p.variable}); len(found) == 0 {
			t.Error("srt itself does not hold the variable: the search finds nothing")
		}
		b.must(cmd.Process.Signal(syscall.SIGTERM))
		wait().exits(143)
	})
}

// CRED-35, case 36: no output, log, file or answer holds a value, with debug lines too, and whatever goes wrong.
func TestCRED_35_Case36_NothingIsTold(t *testing.T) {
	need(t, "curl")
	each(t, func(t *testing.T, b *box) {
		web, _ := b.secure()
		p, c := b.plant("localhost:" + web.port)
		b.ownTemp()
		kept := map[string]bool{}
		for _, path := range b.filesWith(p.all()) {
			kept[path] = true
		}
		url := "https://localhost:" + web.port + "/"
		for _, script := range []string{
			`env; cat token .netrc; cat /proc/*/environ 2>/dev/null | tr "\0" "\n"`,
			`curl -vsS -H "A: $TOKEN" ` + url + `; curl -vsS -H "A: $TOKEN" https://denied.test/; curl -vsSk -H "A: $(cat token)" http://localhost:1/`,
			`curl -vsS "` + url + `?t=$TOKEN"; curl -vsS -X TRACE -H "A: $TOKEN" ` + url,
			`kill -9 $$`, `exit 7`,
		} {
			for _, args := range [][]string{{"-d"}, {"-d", "--violations", b.abs("report")}} {
				r := b.host(slices.Concat([]string{srtPath}, args, []string{"-s", b.settings(c), "exec", "--", "sh", "-c", byProxy + script})...)
				for _, text := range p.all() {
					if strings.Contains(r.stdout+r.stderr, text) {
						t.Errorf("%s is told by %.3000v", text, r)
					}
				}
			}
		}
		r := b.host(srtPath, "-s", b.settings(c), "explain")
		for _, text := range p.all() {
			if strings.Contains(r.stdout+r.stderr, text) {
				t.Errorf("%s is told by %.3000v", text, r)
			}
		}
		for _, path := range b.filesWith(p.all()) {
			if !kept[path] {
				t.Errorf("a value was written to %s", path)
			}
		}
	})
}

// filesWith are the files of this box that hold one of some texts.
func (b *box) filesWith(texts []string) (found []string) {
	b.t.Helper()
	b.must(filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, text := range texts {
			if bytes.Contains(data, []byte(text)) {
				found = append(found, path)
			}
		}
		return err
	}))
	return found
}

// CRED-35: srt dumps no core while it holds values, whatever its own limits and Go's settings say; and its command has the limits
// that srt was given.
func TestCRED_35_NoCore(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.ownTemp()
		_, masked := b.plant("localhost")
		dumps := func(c cfg) (bool, string) {
			words := append([]string{"sh", "-c", `ulimit -c unlimited 2>/dev/null; exec env GOTRACEBACK=crash "$@"`, "sh"},
				b.srt(c, "sh", "-c", "ulimit -Sc >limit; ulimit -c 0; touch ready; exec sleep 60")...)
			cmd := b.command(words...)
			b.must(cmd.Start())
			b.appears("ready")
			limit, err := os.ReadFile(b.abs("limit"))
			b.must(err)
			b.must(cmd.Process.Signal(syscall.SIGABRT))
			_ = cmd.Wait() // takes long: Go gives each thread time to tell where it is
			b.must(os.Remove(b.abs("ready")))
			b.deserted()
			ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
			return ws.Signaled() && ws.CoreDump(), strings.TrimSpace(string(limit))
		}
		var hard unix.Rlimit
		b.must(unix.Getrlimit(unix.RLIMIT_CORE, &hard))
		plain, limit := dumps(cfg{aw: list{"."}})
		if dumped, same := dumps(masked); dumped || same != limit {
			t.Errorf("dumped %v, and the command's limit is %s; without credentials %v and %s", dumped, same, plain, limit)
		}
		if !plain && hard.Max == unix.RLIM_INFINITY && writesCores() {
			t.Error("no core without credentials either: this test shows nothing")
		}
		cores, _ := filepath.Glob(b.work + "/core*")
		for _, path := range cores {
			if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(`"name":"TOKEN"`)) {
				t.Errorf("%s is of a process that masked something", path)
			}
		}
	})
}

// writesCores tells whether the kernel writes core files into working directories.
func writesCores() bool {
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	return err == nil && len(pattern) > 1 && pattern[0] != '|' && pattern[0] != '/'
}
