package broker

import (
	"encoding/binary"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestSplitPath_AsTheKernelDoes(t *testing.T) {
	for in, want := range map[string][2]string{
		"a": {"", "a"}, "a/b": {"a/", "b"}, "/a": {"/", "a"}, "//a": {"//", "a"}, "a//b//": {"a//", "b//"}, "/": {"/", ""}, "///": {"///", ""},
		".": {"", "."}, "a/..": {"a/", ".."}, "a/./": {"a/", "./"}, "../": {"", "../"},
	} {
		if dir, last := splitPath(in); dir != want[0] || last != want[1] {
			t.Errorf("%q: %q, %q; want %q", in, dir, last, want)
		}
	}
	for last, want := range map[string]bool{"": false, ".": false, "..": false, "./": false, "..//": false, "...": true, "a": true, "a/": true, " ": true} {
		if isName(last) != want {
			t.Errorf("%q is a name: %t", last, !want)
		}
	}
}

// What is judged is the component that the kernel would make.
func FuzzSplitPath(f *testing.F) {
	for _, s := range []string{"a", "/", "a/b/", "//x//..", "a/../b", "./.", "\xff/\x01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" || strings.IndexByte(s, 0) >= 0 {
			return
		}
		dir, last := splitPath(s)
		if dir+last != s || dir != "" && !strings.HasSuffix(dir, "/") || strings.Contains(nameOf(last), "/") {
			t.Fatalf("%q: %q and %q", s, dir, last)
		}
		if isName(last) && nameOf(last) != path.Base(s) {
			t.Errorf("%q: %q, want %q", s, nameOf(last), path.Base(s))
		}
		var names []string
		for rest := s; rest != ""; {
			var name string
			if name, rest = nextComponent(rest); name != "" {
				names = append(names, name)
			}
		}
		if want := strings.FieldsFunc(s, func(r rune) bool { return r == '/' }); !slices.Equal(names, want) {
			t.Errorf("%q: components %q, want %q", s, names, want)
		}
	})
}

func TestHow_SizesAsTheKernelTakesThem(t *testing.T) {
	for size, want := range map[uint64]syscall.Errno{0: syscall.EINVAL, 23: syscall.EINVAL, 24: 0, 25: 0, 4096: 0, 4097: syscall.E2BIG, 1 << 63: syscall.E2BIG} {
		if got := checkHowSize(size); got != want {
			t.Errorf("%d: %v, want %v", size, got, want)
		}
	}
}

func FuzzHow(f *testing.F) {
	f.Add(make([]byte, 24))
	f.Add(append(make([]byte, 30), 1))
	f.Add([]byte("0123456789abcdefghijklmnopqrstuv"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if checkHowSize(uint64(len(b))) != 0 {
			return
		}
		how, errno := parseHow(b)
		if zero := len(strings.Trim(string(b[howSize:]), "\x00")) == 0; zero != (errno == 0) {
			t.Fatalf("%v for %x", errno, b)
		}
		if errno == 0 && !slices.Equal(how.bytes(), b[:howSize]) {
			t.Errorf("%x became %x", b[:howSize], how.bytes())
		}
	})
}

func TestUnixName_OnlyPathsMakeNames(t *testing.T) {
	address := func(family uint16, rest string) []byte {
		return append(binary.NativeEndian.AppendUint16(nil, family), rest...)
	}
	for name, c := range map[string]struct {
		address []byte
		path    string
		ok      bool
	}{
		"path":       {address(1, "/run/x\x00"), "/run/x", true},
		"no end":     {address(1, "abc"), "abc", true},
		"rest":       {address(1, "abc\x00def"), "abc", true},
		"longest":    {address(1, strings.Repeat("x", 108)), strings.Repeat("x", 108), true},
		"too long":   {address(1, strings.Repeat("x", 109)), "", false},
		"abstract":   {address(1, "\x00abc"), "", false},
		"autobind":   {address(1, ""), "", false},
		"other":      {address(2, "abc"), "", false},
		"short":      {[]byte{1}, "", false},
		"nothing":    {nil, "", false},
		"unnamed":    {address(1, "\x00"), "", false},
		"big family": {address(0x101, "abc"), "", false},
	} {
		if got, ok := unixName(c.address); got != c.path || ok != c.ok {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
	}
}

func FuzzUnixName(f *testing.F) {
	f.Add([]byte{1, 0, 'a', 0})
	f.Add([]byte{1, 0, 0, 'a'})
	f.Add([]byte{2, 0, 'a'})
	f.Fuzz(func(t *testing.T, b []byte) {
		name, ok := unixName(b)
		if !ok {
			return
		}
		if name == "" || strings.IndexByte(name, 0) >= 0 || len(b) > unixMax {
			t.Fatalf("%q of %x", name, b)
		}
		if again, ok := unixName(unixAddress(name)); !ok || again != name {
			t.Errorf("%q became %q", name, again)
		}
	})
}

const statusText = `Name:	a b
Umask:	0027
State:	S (sleeping)
Tgid:	123
Ngid:	0
Pid:	124
Uid:	1	2	3	4
Gid:	5	6	7	8
FDSize:	64
Groups:	9 10 4294967294 
NStgid:	123	7
NSpid:	124	8
Threads:	2
SigPnd:	0000000000000001
ShdPnd:	0000000000000002
SigBlk:	0000000000000004
SigIgn:	0000000000000008
SigCgt:	0000000000000010
CapPrm:	0000000000000021
CapEff:	000001ffffffffff
Seccomp:	2
`

func TestStatus_ReadsWhatMatters(t *testing.T) {
	s, err := parseStatus([]byte(statusText))
	if err != nil {
		t.Fatal(err)
	}
	if s.umask != 0o27 || s.tgid != 123 || s.uids != [4]uint32{1, 2, 3, 4} || s.gids != [4]uint32{5, 6, 7, 8} || !slices.Equal(s.groups, []uint32{9, 10, 1<<32 - 2}) ||
		s.inner != 7 || s.innerThread != 8 || s.threads != 2 || s.pending != 1 || s.shared != 2 || s.blocked != 4 || s.ignored != 8 || s.permitted != 0x21 || s.effective != 1<<41-1 {
		t.Errorf("%+v", s)
	}
	own, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("got no /proc, want Linux:", err)
	}
	if s, err = parseStatus(own); err != nil || s.tgid != os.Getpid() || int(s.uids[1]) != os.Geteuid() {
		t.Errorf("this process: %+v, %v", s, err)
	}
	for _, line := range strings.SplitAfter(statusText, "\n") {
		key, _, _ := strings.Cut(line, ":")
		if slices.Contains([]string{"Name", "State", "Ngid", "Pid", "FDSize", "SigCgt", "Seccomp", ""}, key) {
			continue
		}
		for _, text := range []string{strings.Replace(statusText, line, "", 1), strings.Replace(statusText, line, key+":\tx\n", 1)} {
			if _, err := parseStatus([]byte(text)); !errors.Is(err, errStatus) {
				t.Errorf("without a good line %q: %v", key, err)
			}
		}
	}
}

func TestStatus_Interrupted(t *testing.T) {
	for name, c := range map[string]struct {
		status    status
		yes, sure bool
	}{
		"nothing":              {status{threads: 1}, false, false},
		"own":                  {status{threads: 9, pending: 2}, true, true},
		"own but blocked":      {status{threads: 9, pending: 2, blocked: 2}, false, false},
		"own but ignored":      {status{threads: 9, pending: 2, ignored: 2}, false, false},
		"of the process":       {status{threads: 9, shared: 2}, true, false},
		"of the only thread":   {status{threads: 1, shared: 2}, true, true},
		"another than blocked": {status{threads: 1, shared: 6, blocked: 2}, true, true},
	} {
		if yes, sure := c.status.interrupted(); yes != c.yes || yes && sure != c.sure {
			t.Errorf("%s: %t, %t", name, yes, sure)
		}
	}
}

func FuzzStatus(f *testing.F) {
	f.Add([]byte(statusText))
	f.Add([]byte("Umask:\t999\n"))
	f.Add([]byte("Groups:\t-1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseStatus(b)
		if err == nil && (s.tgid < 0 || s.inner < 0 || s.threads < 0) {
			t.Errorf("%+v", s)
		}
	})
}
