package fsview

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// TestResolverFiles_NET7: a command's lookups go to the sandbox's own resolver, and the host's entries and domains stay out.
func TestResolverFiles_NET7(t *testing.T) {
	host := map[string]string{
		"/etc/resolv.conf":          "nameserver 10.0.0.53\nsearch corp.example\n",
		"/etc/hosts":                "127.0.0.1 localhost\n10.1.1.1 secret.corp.example\n",
		"/etc/nsswitch.conf":        "passwd: files\nhosts: files mdns4_minimal [NOTFOUND=return] resolve dns\n",
		"/proc/sys/kernel/hostname": "box\n",
	}
	want := map[string]string{
		"/etc/resolv.conf":   resolverConfig,
		"/etc/hosts":         "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.0.1 box\n",
		"/etc/nsswitch.conf": "passwd: files\nhosts: files dns\nnetworks: files\n",
	}
	for _, tt := range []struct {
		name, lacks string // lacks is a file that the host does not have
		gone, hosts string
	}{
		{"all there", "", "", ""},
		{"no nsswitch.conf", "/etc/nsswitch.conf", "/etc/nsswitch.conf", ""},
		{"no name", "/proc/sys/kernel/hostname", "", localHosts},
		{"no hosts, of which nothing is taken", "/etc/hosts", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := map[string]string{}
			for _, f := range ResolverFiles(func(p string) ([]byte, error) {
				if text, ok := host[p]; ok && p != tt.lacks {
					return []byte(text), nil
				}
				return nil, fs.ErrNotExist
			}) {
				got[f.Path] = string(f.Content)
			}
			expected := map[string]string{}
			for p, text := range want {
				if p != tt.gone {
					expected[p] = text
				}
			}
			if tt.hosts != "" {
				expected["/etc/hosts"] = tt.hosts
			}
			if d := cmp.Diff(expected, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
	if n := len(ResolverFiles(func(string) ([]byte, error) { return nil, errors.New("no") })); n != 2 {
		t.Errorf("%d files of a host that cannot be read", n)
	}
}

// TestResolverConfig_NET7 keeps what the comment at resolverConfig argues for.
func TestResolverConfig_NET7(t *testing.T) {
	var lines []string
	for line := range strings.Lines(resolverConfig) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if d := cmp.Diff([]string{"nameserver 127.0.0.1\n", "search .\n", "options ndots:0\n"}, lines); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

var sourceCases = []struct{ name, text, want string }{
	{"plain", "passwd: files\nhosts: files resolve [!UNAVAIL=return] dns\nshadow: files\n", "passwd: files\nhosts: files dns\nshadow: files\nnetworks: files\n"},
	{"both", "networks: nis\nhosts: nis\n", "networks: files\nhosts: files dns\n"},
	{"empty", "", "hosts: files dns\nnetworks: files\n"},
	{"no line feed at the end", "passwd: files", "passwd: files\nhosts: files dns\nnetworks: files\n"},
	{"ours at the end without a line feed", "networks:files\nhosts:dns", "networks: files\nhosts: files dns\n"},
	{"blanks in front and tabs", " \t\v\f\rhosts:\tdns\nnetworks:files\n", "hosts: files dns\nnetworks: files\n"},
	{"a blank before the colon", "hosts : dns\nnetworks\t: nis\n", "hosts: files dns\nnetworks: files\n"},
	{"no colon, which glibc takes", "hosts nis dns\n", "hosts: files dns\nnetworks: files\n"},
	{"letter case", "HOSTS: nis\nNetWorks: nis\n", "hosts: files dns\nnetworks: files\n"},
	{"repeated", "hosts: files\npasswd: files\nhosts: resolve\n", "hosts: files dns\npasswd: files\nnetworks: files\n"},
	{"a comment", "# hosts: nis\n#networks: nis\nhosts: files # dns\n", "# hosts: nis\n#networks: nis\nhosts: files dns\nnetworks: files\n"},
	{"a comment within the name", "host#s: nis\nhosts# nis\n", "host#s: nis\nhosts: files dns\nnetworks: files\n"},
	{"other names", "hosts6: nis\nxhosts: nis\nhost: nis\npasswd: hosts\n", "hosts6: nis\nxhosts: nis\nhost: nis\npasswd: hosts\nhosts: files dns\nnetworks: files\n"},
	{"a backslash continues nothing", "hosts: files \\\n  resolve\npasswd: files \\\nhosts: nis\n", "hosts: files dns\n  resolve\npasswd: files \\\nnetworks: files\n"},
	{"a letter that only looks like one", "ho\u017fts: nis\nnetwor\u212as: nis\n", "ho\u017fts: nis\nnetwor\u212as: nis\nhosts: files dns\nnetworks: files\n"},
	{"CR LF", "passwd: files\r\nhosts: nis\r\n", "passwd: files\r\nhosts: files dns\nnetworks: files\n"},
	{"a lone CR ends no line", "passwd: files\rhosts: nis\n", "passwd: files\rhosts: nis\nhosts: files dns\nnetworks: files\n"},
	{"NUL and bytes beyond ASCII", "pass\x00wd: x\n\xff\xfe: y\n", "pass\x00wd: x\n\xff\xfe: y\nhosts: files dns\nnetworks: files\n"},
	{"empty lines", "\n\n: x\nhosts:\n", "\n\n: x\nhosts: files dns\nnetworks: files\n"},
}

func TestLocalSources_NET7(t *testing.T) {
	for _, tt := range sourceCases {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(localSources([]byte(tt.text))); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestOwnNameEntry_NET7: what is no host's name, or would be more than one entry, is left out.
func TestOwnNameEntry_NET7(t *testing.T) {
	for name, want := range map[string]string{
		"box": "127.0.0.1 box\n", "box.corp.example": "127.0.0.1 box.corp.example box\n", "box.": "127.0.0.1 box\n",
		"Box_1-x": "127.0.0.1 Box_1-x\n", "4f": "127.0.0.1 4f\n", "7.corp.example": "127.0.0.1 7.corp.example\n",
		"localhost.localdomain": "127.0.0.1 localhost.localdomain\n",
		"":                      "", "localhost": "", "LocalHost": "", "(none)": "", "a b": "", "a\n10.0.0.1 evil": "", "a#b": "", "a..b": "", ".a": "",
		"10.0.0.1": "", "12345": "", "a.1": "", "m\u00fcller": "", strings.Repeat("a.", 128): "", "a\x00b": "", "::1": "",
	} {
		if got := ownNameEntry(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// FuzzLocalSources reads what is written as glibc would, by a reader of its own, and wants the two lines, once each, and
// every other line as it was.
func FuzzLocalSources(f *testing.F) {
	for _, tt := range sourceCases {
		f.Add([]byte(tt.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := localSources(bytes.Clone(text))
		count := map[string]int{}
		var others []string
		for line := range strings.Lines(string(got)) {
			switch name := databaseOf(line); name {
			case "hosts", "networks":
				if count[name]++; line != map[string]string{"hosts": "hosts: files dns\n", "networks": "networks: files\n"}[name] {
					t.Errorf("the line %q is left", line)
				}
			default:
				others = append(others, strings.TrimSuffix(line, "\n"))
			}
		}
		if count["hosts"] != 1 || count["networks"] != 1 {
			t.Errorf("%v lines of ours in %q", count, got)
		}
		var before []string
		for line := range strings.Lines(string(text)) {
			if name := databaseOf(line); name != "hosts" && name != "networks" {
				before = append(before, strings.TrimSuffix(line, "\n"))
			}
		}
		if d := cmp.Diff(before, others); d != "" {
			t.Errorf("other lines (-host +inside):\n%s", d)
		}
		if again := localSources(bytes.Clone(got)); !bytes.Equal(again, got) {
			t.Errorf("a second time gives %q for %q", again, got)
		}
	})
}

// databaseOf is the name that a line of nsswitch.conf starts with, lower case, character by character as in glibc.
func databaseOf(line string) string {
	space := func(c byte) bool { return c <= unicode.MaxASCII && unicode.IsSpace(rune(c)) }
	line, _, _ = strings.Cut(line, "#")
	for line != "" && space(line[0]) {
		line = line[1:]
	}
	end := 0
	for end < len(line) && !space(line[end]) && line[end] != ':' {
		end++
	}
	name := []byte(line[:end])
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			name[i] = c + 'a' - 'A'
		}
	}
	return string(name)
}

// FuzzOwnNameEntry: whatever a machine is called, the file gets one well-formed entry for 127.0.0.1 or none.
func FuzzOwnNameEntry(f *testing.F) {
	for _, name := range []string{"box", "box.corp.example", "a\n10.0.0.1 evil", "1.2.3.4", "a b#c", "localhost."} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		line := ownNameEntry(name)
		if line == "" {
			return
		}
		fields := strings.Fields(line)
		if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") || fields[0] != "127.0.0.1" || len(fields) > 3 ||
			fields[1] != strings.TrimSuffix(name, ".") || len(fields) == 3 && !strings.HasPrefix(fields[1], fields[2]+".") {
			t.Errorf("%q gives %q", name, line)
		}
	})
}
