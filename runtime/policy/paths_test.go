package policy

import (
	"errors"
	"strings"
	"testing"
)

func TestPathText(t *testing.T) {
	const cwd, home = "/home/u/p", "/home/u"
	tests := []struct {
		name           string
		entry          string
		literal, write bool
		want           string
		pattern        bool
	}{
		{name: "FS-5 home", entry: "~", want: "/home/u"},
		{name: "FS-5 home with slash", entry: "~/", want: "/home/u"},
		{name: "FS-5 beneath home", entry: "~/a/b", want: "/home/u/a/b"},
		{name: "FS-5 double slash beneath home", entry: "~//etc", want: "/home/u/etc"},
		{name: "FS-5 marked home", entry: "~/a*", literal: true, want: "/home/u/a*"},
		{name: "FS-5 another user is a name", entry: "~root/x", want: "/home/u/p/~root/x"},
		{name: "FS-5 inner tilde is a name", entry: "a/~", want: "/home/u/p/a/~"},
		{name: "FS-6 relative", entry: "a", want: "/home/u/p/a"},
		{name: "FS-6 cwd", entry: ".", want: "/home/u/p"},
		{name: "FS-6 slashes and dots", entry: ".//a/./b/", want: "/home/u/p/a/b"},
		{name: "FS-6 trailing slash dot", entry: "a/.", want: "/home/u/p/a"},
		{name: "FS-6 parent folds in the text", entry: "link/..", want: "/home/u/p"},
		{name: "FS-6 parent beyond the root", entry: "/../../x", want: "/x"},
		{name: "FS-6 deep wildcard", entry: "src/**", want: "/home/u/p/src"},
		{name: "FS-6 deep wildcard of the root", entry: "/**", want: "/"},
		{name: "FS-6 deep wildcard of the home", entry: "~/**", want: "/home/u"},
		{name: "FS-6 deep wildcard of the cwd", entry: "./**", want: "/home/u/p"},
		{name: "FS-6 one deep wildcard only", entry: "a/**/**", write: true, want: "/home/u/p/a/**", pattern: true},
		{name: "FS-6 marked deep wildcard is a name", entry: "src/**", literal: true, want: "/home/u/p/src/**"},
		{name: "FS-20 a read pattern keeps it", entry: "*/b/**", want: "/home/u/p/*/b/**", pattern: true},
		{name: "FS-20 a write pattern loses it", entry: "*/b/**", write: true, want: "/home/u/p/*/b", pattern: true},
		{name: "FS-12 star", entry: "*.pem", want: "/home/u/p/*.pem", pattern: true},
		{name: "FS-12 question mark", entry: "a?", want: "/home/u/p/a?", pattern: true},
		{name: "FS-12 brackets", entry: "a]", want: "/home/u/p/a]", pattern: true},
		{name: "FS-12 no slash before stars", entry: "**", want: "/home/u/p/**", pattern: true},
		{name: "FS-6 a wildcard that is folded away", entry: "x*/..", want: "/home/u/p"},
		{name: "FS-6 a rooted wildcard that is folded away", entry: "/x*/../y", want: "/y"},
		{name: "FS-17 marked", entry: "x*y", literal: true, want: "/home/u/p/x*y"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok, err := pathText(tt.entry, tt.literal, !tt.write, cwd, home)
			if err != nil || !ok {
				t.Fatalf("pathText(%q) = %v, %v, %v", tt.entry, got, ok, err)
			}
			if got.Path != tt.want || got.Pattern != tt.pattern || got.Entry != tt.entry {
				t.Errorf("pathText(%q) = %q pattern=%v entry=%q, want %q pattern=%v", tt.entry, got.Path, got.Pattern,
					got.Entry, tt.want, tt.pattern)
			}
		})
	}
}

func TestPathTextGlobInCwd_FS12(t *testing.T) {
	got, _, err := pathText("a", false, true, "/w/[x]*", "")
	if err != nil || got.Pattern || got.Path != "/w/[x]*/a" {
		t.Errorf("glob characters of the cwd counted as written: %+v, %v", got, err)
	}
}

func TestPathTextEmptyHome_FS5(t *testing.T) {
	for _, entry := range []string{"~", "~/", "~/x", "~/**"} {
		if got, ok, err := pathText(entry, false, true, "/w", ""); ok || err != nil {
			t.Errorf("pathText(%q) with an empty home = %q, %v, %v, want nothing", entry, got.Path, ok, err)
		}
	}
}

func TestPathTextRefused_FS2_FS4(t *testing.T) {
	for _, entry := range []string{"", "a\x00b", "\x00"} {
		_, ok, err := pathText(entry, false, true, "/w", "/h")
		var pe *PathError
		if ok || !errors.As(err, &pe) {
			t.Fatalf("pathText(%q) = %v, %v, want a PathError", entry, ok, err)
		}
		if strings.IndexByte(pe.Error(), 0) >= 0 {
			t.Errorf("the message of %q carries a NUL byte", entry)
		}
	}
}

func TestCovers(t *testing.T) {
	tests := []struct {
		base, p string
		want    bool
	}{
		{"/", "/", true}, {"/", "/x", true}, {"/x", "/x", true}, {"/x", "/x/y", true},
		{"/x", "/xy", false}, {"/x", "/", false}, {"/x/y", "/x", false},
	}
	for _, tt := range tests {
		if got := Covers(tt.base, tt.p); got != tt.want {
			t.Errorf("Covers(%q, %q) = %v, want %v", tt.base, tt.p, got, tt.want)
		}
	}
}

func TestDefaultWritePaths_FS28(t *testing.T) {
	rule := func(p string) []PathRule { return []PathRule{{Path: p, Pattern: strings.Contains(p, "*")}} }
	const npm, debug = "/h/.npm/_logs", "/h/.claude/debug"
	tests := []struct {
		name       string
		home       string
		rules      PathRules
		npm, debug bool
	}{
		{"no rules", "/h", PathRules{}, true, true},
		{"no home", "", PathRules{}, false, false},
		{"home hidden", "/h", PathRules{DenyRead: rule("/h")}, false, false},
		{"parent hidden", "/h", PathRules{DenyRead: rule("/h/.npm")}, false, true},
		{"beneath hidden", "/h", PathRules{DenyRead: rule("/h/.npm/_logs/x")}, true, true},
		{"re-allowed", "/h", PathRules{DenyRead: rule("/h"), AllowRead: rule("/h/.npm")}, true, false},
		{"allow above the deny", "/h", PathRules{DenyRead: rule("/h/.npm"), AllowRead: rule("/h")}, false, true},
		{"allow at the deny", "/h", PathRules{DenyRead: rule("/h"), AllowRead: rule("/h")}, true, true},
		{"credential deny is final", "/h", PathRules{CredentialDeny: rule("/h"), AllowRead: rule("/h")}, false, false},
		{"deny pattern", "/h", PathRules{DenyRead: rule("/h/.n*")}, false, false},
		{"deny pattern elsewhere", "/h", PathRules{DenyRead: rule("/h/p/*")}, true, true},
		{"allow pattern does not count", "/h", PathRules{DenyRead: rule("/h"), AllowRead: rule("/h/*")}, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			have := map[string]bool{}
			for _, p := range DefaultWritePaths(tt.home, tt.rules) {
				have[p] = true
			}
			if have[npm] != tt.npm || have[debug] != tt.debug {
				t.Errorf("npm %v debug %v, want %v %v", have[npm], have[debug], tt.npm, tt.debug)
			}
			if !have["/dev/null"] || !have["/tmp/claude"] {
				t.Error("a shared default is missing")
			}
		})
	}
}
