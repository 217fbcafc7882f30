package bpf

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

//go:embed programs/probe.o
var probeObject []byte

// testKernel is an Enforcer without hooks, whose rules are asked by the programs of programs/probe.bpf.c.
type testKernel struct {
	*Enforcer
	probe *programSet
}

// newTestKernel skips where this process may load no programs at all, which Supported must say too.
func newTestKernel(t testing.TB) *testKernel {
	t.Helper()
	set, err := newProgramSet()
	if err != nil {
		if supported := Supported(); !errors.Is(err, ErrNoCapability) || !errors.Is(supported, ErrNoCapability) {
			t.Fatalf("programs do not load: %v; Supported: %v", err, supported)
		}
		t.Skipf("got %v, want a process that may load programs", err)
	}
	k := &testKernel{Enforcer: newEnforcer(set)}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	object, err := parseObject(probeObject, mapSpecs[:])
	if err != nil {
		t.Fatal(err)
	}
	k.probe = &programSet{object: object, loader: set.loader}
	if k.probe.loader.btf, err = loadBTF(object.btf); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.probe.loader.btf.Close() })
	return k
}

// load loads a program of the tests.
func (k *testKernel) load(t testing.TB, name string) *os.File {
	t.Helper()
	l := k.probe.loader
	l.kind, l.flags = progSyscall, flagSleepable
	if strings.HasPrefix(k.probe.object.programs[name].section, "raw_tp/") {
		l.kind, l.flags = progRawTracepoint, 0
	}
	prog, err := l.program(name, k.probe.object.programs[name])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prog.Close() })
	return prog
}

// trace attaches a program of the tests to its tracepoint.
func (k *testKernel) trace(t testing.TB, name string) {
	t.Helper()
	prog := k.load(t, name)
	link, err := attach(prog, strings.TrimPrefix(k.probe.object.programs[name].section, "raw_tp/"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
}

// ask puts a question to the judgement of the hooks.
func ask(t testing.TB, prog *os.File, session uint64, dir dirKey, name string, report bool) (refused bool) {
	t.Helper()
	ctx := make([]byte, 32+nameSize)
	le.PutUint64(ctx, session)
	le.PutUint64(ctx[8:], dir.ino)
	copy(ctx[16:], words(dir.dev, uint32(len(name))))
	if report {
		le.PutUint32(ctx[28:], 1)
	}
	copy(ctx[32:], name)
	if err := run(prog, ctx); err != nil {
		t.Fatal(err)
	}
	return le.Uint32(ctx[24:]) != 0
}

// recorder collects refusals.
type recorder struct {
	mu   sync.Mutex
	list []Refusal
}

func (r *recorder) add(refusal Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, refusal)
}

func (r *recorder) all() []Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// ruleFor makes a rule about a directory as it is.
func ruleFor(t testing.TB, dir, name string, fold bool) Rule {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	return Rule{Dir: dir, Dev: st.Dev, Ino: st.Ino, Name: name, Fold: fold}
}

func mkdirs(t testing.TB, names ...string) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "srt-bpf-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for _, name := range append(names, "") {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (k *testKernel) session(t testing.TB, namespace *os.File, report func(Refusal), rules ...Rule) *Session {
	t.Helper()
	s, err := k.Session(namespace, report)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	if err := s.Add(rules); err != nil {
		t.Fatal(err)
	}
	return s
}

func place(t testing.TB, k *testKernel, dir string) dirKey {
	t.Helper()
	r := ruleFor(t, dir, "x", false)
	key, err := k.set.identifyOne(&r)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestJudge_FS30(t *testing.T) {
	k := newTestKernel(t)
	dir := mkdirs(t, "other")
	prog, here, there := k.load(t, "ask"), place(t, k, dir), place(t, k, filepath.Join(dir, "other"))
	long, longer := strings.Repeat("l", 255), strings.Repeat("l", 256)
	s := k.session(t, startChild(t, 0).namespace, nil, ruleFor(t, dir, "new", false), ruleFor(t, dir, ".BashRC", true),
		ruleFor(t, dir, "hooks", true), ruleFor(t, dir, long, false), ruleFor(t, dir, "\xff\xfe", false))
	tests := []struct {
		what string
		dir  dirKey
		name string
		want bool
	}{
		{"FS-30 the name", here, "new", true},
		{"FS-30 elsewhere", there, "new", false},
		{"FS-30 same inode, other device", dirKey{ino: here.ino, dev: here.dev + 1}, "new", false},
		{"FS-12 case counts", here, "NEW", false},
		{"FS-30 part", here, "ne", false},
		{"FS-30 longer", here, "news", false},
		{"FS-38 case is ignored", here, ".bashrc", true},
		{"FS-38 case is ignored, all large", here, ".BASHRC", true},
		{"FS-38 other signs keep their case", here, "\x0eBASHRC", false},
		{"FS-38 letters that become ASCII", here, "HOO\u212aS", true},
		{"FS-30 longest", here, long, true},
		{"FS-30 too long for any rule", here, longer, false},
		{"FS-13 bytes", here, "\xff\xfe", true},
		{"FS-30 empty", here, "", false},
	}
	for _, tt := range tests {
		if got := ask(t, prog, s.id, tt.dir, tt.name, false); got != tt.want {
			t.Errorf("%s: refused = %v", tt.what, got)
		}
		if ask(t, prog, s.id+1, tt.dir, tt.name, false) {
			t.Errorf("%s: refused in another session", tt.what)
		}
	}
}

// FS-38 at every place of a word of eight bytes.
func TestJudge_FS38_EveryByte(t *testing.T) {
	k := newTestKernel(t)
	dir := mkdirs(t)
	prog, here := k.load(t, "ask"), place(t, k, dir)
	s := k.session(t, startChild(t, 0).namespace, nil, ruleFor(t, dir, "abcdefgh@[`{zzzzz", true))
	for at := range 17 {
		for c := 1; c < 256; c++ {
			name := []byte("ABCDEFGH@[`{ZZZZZ")
			name[at] = byte(c)
			want := strings.ToLower(string(name)) == "abcdefgh@[`{zzzzz"
			if got := ask(t, prog, s.id, here, string(name), false); got != want {
				t.Fatalf("%q: refused = %v", name, got)
			}
		}
	}
}

func TestSession_AddAndClose(t *testing.T) {
	k := newTestKernel(t)
	dir := mkdirs(t, "a", "b")
	prog := k.load(t, "ask")
	var rules []Rule
	for i := range 10000 { // issue size: 10,000 entries
		rules = append(rules, ruleFor(t, filepath.Join(dir, "ab"[i%2:i%2+1]), fmt.Sprint("n", i), i%3 == 0))
	}
	first := k.session(t, startChild(t, 0).namespace, nil, rules...)
	second := k.session(t, startChild(t, 0).namespace, nil, rules[:10]...)
	places := []dirKey{place(t, k, filepath.Join(dir, "a")), place(t, k, filepath.Join(dir, "b"))}
	count := func(s *Session) (refused int) {
		for i := 0; i < len(rules); i += 7 {
			if ask(t, prog, s.id, places[i%2], rules[i].Name, false) {
				refused++
			}
		}
		return refused
	}
	if got, want := count(first), (len(rules)+6)/7; got != want {
		t.Errorf("%d of %d rules hold", got, want)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := count(first); got != 0 {
		t.Errorf("%d rules hold after the end", got)
	}
	if got := count(second); got != 2 {
		t.Errorf("FS-54: %d rules of the other sandbox hold, want 2", got)
	}
	if err := first.Add(nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := first.Close(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	for _, m := range []int{mapSessions, mapDirs, mapNames} {
		if n := entries(t, k.set.loader.maps[m], mapSpecs[m].key); n != 0 {
			t.Errorf("%d entries left in %s", n, mapSpecs[m].name)
		}
	}
}

// FS-65: what has no room is an error, and leaves nothing behind.
func TestSession_FS65_Full(t *testing.T) {
	k := newTestKernel(t)
	dir := mkdirs(t)
	rule := ruleFor(t, dir, "", false)
	rules := make([]Rule, maxRules+1)
	for i := range rules {
		rules[i] = rule
		rules[i].Name = fmt.Sprint("n", i)
	}
	s := k.session(t, startChild(t, 0).namespace, nil)
	if err := s.Add(rules); !errors.Is(err, ErrFull) {
		t.Errorf("%d rules: %v", len(rules), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := entries(t, k.set.loader.maps[mapNames], nameKeySize); n != 0 {
		t.Errorf("%d names are left", n)
	}
}

// The end of the hooks ends every session, in whatever order they are closed.
func TestEnforcer_Close(t *testing.T) {
	set, err := newProgramSet()
	if err != nil {
		newTestKernel(t) // says why, and skips where that is right
	}
	e := newEnforcer(set)
	dir := mkdirs(t)
	c := startChild(t, 0)
	s, err := e.Session(c.namespace, func(Refusal) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add([]Rule{ruleFor(t, dir, "new", false)}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Add([]Rule{ruleFor(t, dir, "other", false)}); err == nil {
		t.Error("rules are added to nothing")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := e.Session(c.namespace, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a session of nothing: %v", err)
	}
	if _, err := e.Lost(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := e.Close(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// entries counts what is in a map.
func entries(t *testing.T, m *os.File, size uint32) (count int) {
	t.Helper()
	const cmdNextKey = 4
	var key []byte
	for {
		next := make([]byte, size)
		if err := element(cmdNextKey, m, key, next); errors.Is(err, unix.ENOENT) {
			return count
		} else if err != nil {
			t.Fatal(err)
		}
		key = next
		count++
	}
}

func TestSession_Errors(t *testing.T) {
	k := newTestKernel(t)
	dir := mkdirs(t, "a")
	c := startChild(t, 0)
	moved := ruleFor(t, dir, "new", false)
	moved.Ino++
	gone := ruleFor(t, dir, "new", false)
	gone.Dir = filepath.Join(dir, "gone")
	link := ruleFor(t, dir, "new", false)
	link.Dir = filepath.Join(dir, "link")
	if err := os.Symlink(dir, link.Dir); err != nil {
		t.Fatal(err)
	}
	for what, tt := range map[string]struct {
		rule Rule
		want error
	}{
		"another directory": {moved, ErrMoved}, "none": {gone, unix.ENOENT}, "through a link": {link, unix.ENOTDIR},
		"no name": {ruleFor(t, dir, "", false), ErrRule},
	} {
		s := k.session(t, c.namespace, nil)
		if err := s.Add([]Rule{ruleFor(t, dir, "before", false), tt.rule}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", what, err, tt.want)
		}
		if err := s.Add([]Rule{ruleFor(t, dir, "new", false)}); !errors.Is(err, tt.want) {
			t.Errorf("%s: a later Add forgets the error: %v", what, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	k.session(t, c.namespace, nil)
	own, err := os.Open("/proc/self/ns/user")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	pid, err := os.Open("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	defer pid.Close()
	for what, file := range map[string]*os.File{"own": own, "pid": pid, "again": c.namespace} {
		if _, err := k.Session(file, nil); !errors.Is(err, ErrNamespace) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
