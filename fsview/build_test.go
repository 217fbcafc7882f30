package fsview

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// input makes an Input from words such as "dR=sec aW=. cred=keys": the four lists, credential denies, and the other
// fields by name. The working directory is /h/p and the home /h.
func input(t testing.TB, words string) Input {
	t.Helper()
	in := Input{Cwd: "/h/p", Home: "/h", UID: 1000}
	lists := policy.PathInput{Cwd: "/h/p", Home: "/h"}
	for _, w := range strings.Fields(words) {
		key, value, _ := strings.Cut(w, "=")
		entry := config.PathEntry{Path: value}
		switch key {
		case "dR":
			lists.DenyRead = append(lists.DenyRead, entry)
		case "aR":
			lists.AllowRead = append(lists.AllowRead, entry)
		case "aW":
			lists.AllowWrite = append(lists.AllowWrite, entry)
		case "dW":
			lists.DenyWrite = append(lists.DenyWrite, entry)
		case "cred":
			lists.CredentialFiles = append(lists.CredentialFiles,
				config.FileCredential{Path: value, Credential: config.Credential{Mode: config.ModeDeny}})
		case "extra":
			in.ExtraWrite = append(in.ExtraWrite, value)
		case "own":
			in.OwnFiles = append(in.OwnFiles, value)
		case "keep":
			in.Keep = append(in.Keep, value)
		case "proc":
			in.ProcMounts = append(in.ProcMounts, value)
		case "cwd":
			in.Cwd, lists.Cwd = value, value
		case "home":
			in.Home, lists.Home = value, value
		case "depth":
			fmt.Sscan(value, &in.MandatoryDepth)
		case "root":
			in.UID = 0
		case "gitconfig":
			in.AllowGitConfig = true
		case "ssh":
			in.HideSSHConfigDir = true
		case "disabled":
			in.Disabled = true
		default:
			t.Fatalf("unknown word %q", w)
		}
	}
	rules, err := policy.ResolvePaths(lists)
	if err != nil {
		t.Fatal(err)
	}
	in.Rules = rules
	return in
}

// built makes a plan that must succeed, executes it, and checks that nothing protected can be moved.
func built(t testing.TB, tree *fakeTree, words string) (*Plan, *view) {
	t.Helper()
	in := input(t, words)
	tree.uid = in.UID
	plan, err := Build(tree, in)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	v, err := apply(tree, plan)
	if err == nil {
		err = v.checkPinned()
	}
	if err != nil {
		t.Fatalf("%v\nplan:\n%s", err, listing(plan))
	}
	for _, w := range append(append([]string{}, plan.Warnings...), plan.Notes...) {
		if strings.ContainsAny(w, "\n\x00") {
			t.Errorf("not one line: %q", w)
		}
	}
	return plan, v
}

// listing writes the steps, one a line, with paths in /h/p shortened.
func listing(plan *Plan) string {
	var lines []string
	for _, s := range plan.Steps {
		line := s.Kind.String() + " " + s.Path
		if s.Source != "" && s.Source != s.Path {
			line += " from " + s.Source
		}
		if len(s.Make) > 0 {
			line += " make " + strings.Join(s.Make, ",")
		}
		if s.Late {
			line += " late"
		}
		lines = append(lines, line)
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), "/h/p", "@")
}

func TestBuildSteps(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		want              string // steps separated by "; "
	}{
		{"FS-26 nothing is writable by default", "d /h/p", "", ""},
		{"FS-26 case 1", "f /h/p/f", "aW=.", "writable @"},
		{"FS-26 case 2", "f /h/p/conf;d /h/p/prot", "aW=. dW=conf dW=prot",
			"writable @; read-only @/conf; read-only @/prot"},
		{"FS-26 case 3 an allow beneath a deny", "d /h/p/prot/sub", "aW=. aW=prot/sub dW=prot",
			"writable @; read-only @/prot"},
		{"FS-26 case 4", "d /h/p", "aW=/ aW=. dW=/", ""},
		{"FS-26 deny above the root", "d /h/p", "aW=. dW=~", ""},
		{"FS-26 only outermost roots are cloned", "d /h/p/a/b", "aW=. aW=a aW=a/b", "writable @"},
		{"FS-26 file root", "f /h/p/f", "aW=f", "writable @/f"},
		{"FS-30 case 6 file in the way", "f /h/p/f", "aW=. dW=f/x", "writable @; read-only @/f"},
		{"FS-30 a file root with a file in the way", "f /h/p/f", "aW=f dW=f/x", ""},
		{"FS-30 no root covers an absent path", "d /h/p", "aW=. dW=/h/none/x dW=~/.netrc", "writable @"},
		{"FS-30 a deny covers an absent path", "d /h/p/prot", "aW=. dW=prot dW=prot/x", "writable @; read-only @/prot"},
		{"FS-30 case 11 another user's directory", "d /h/p;d /etc", "aW=/ dW=/etc/absent dW=/.mcp.json", ""},
		{"FS-30 read-only file system", "d /h/p rofs", "aW=. dW=absent/x", "writable @"},
		{"FS-30 another user's directory in one's own is held",
			"d /h/p/in/o uid=5", "aW=. dW=in/o/x", "pin @/in/o; pin @/in; writable @"},
		{"FS-22 case 7", "f /h/p/sec/k", "dR=sec", "hide directory @/sec"},
		{"FS-22 case 8 a file needs its own allow", "f /h/p/.env", "dR=.env aR=.", "hide file @/.env"},
		{"FS-22 case 9 its own allow", "f /h/p/.env", "dR=.env aR=.env", ""},
		{"FS-22 case 9 a write grant is none", "f /h/p/.env", "dR=.env aW=.env", "hide file @/.env"},
		{"FS-22 case 9 the root", "d /h/p", "dR=/ aR=/", ""},
		{"FS-9 case 10", "f /h/p/sec/k;l /h/p/lk sec/k", "dR=sec/k aR=lk", "hide file @/sec/k"},
		{"FS-22 case 11", "f /h/p/a/f;f /h/p/a/b/f;f /h/p/a/b/c/f;f /h/p/a/b/c/d/f", "dR=a dR=a/b/c aR=a/b aR=a/b/c/d",
			"hide directory @/a; reveal @/a/b make b; hide directory @/a/b/c; reveal @/a/b/c/d make d"},
		{"FS-27 case 12", "d /h/p/build;f /h/.bashrc", "dR=~ aR=. aW=build",
			"hide directory /h; reveal @ make p; writable @/build"},
		{"FS-22 case 13 allow wins at equal depth", "d /h/p/sec", "dR=sec aW=sec", "writable @/sec"},
		{"FS-22 case 13 deepest deny", "d /h/p/sec", "dR=sec aW=.", "writable @; hide directory @/sec"},
		{"FS-22 write grant in a hidden directory", "d /h/p/sec/a/w;f /h/p/sec/a/w/ro", "dR=sec aW=sec/a/w dW=sec/a/w/ro",
			"hide directory @/sec; reveal writable @/sec/a/w make a,a/w; read-only @/sec/a/w/ro"},
		{"FS-22 re-allowed file in a hidden directory", "f /h/p/sec/a/f;f /h/p/sec/a/g", "dR=sec aR=sec/a/f aR=sec/a/g",
			"hide directory @/sec; reveal @/sec/a/f make a,a/f; reveal @/sec/a/g make a/g"},
		{"FS-27 allowRead and allowWrite of a file", "f /h/p/f", "dR=f aR=f aW=f", "writable @/f"},
		{"FS-32 denyWrite of a hidden directory", "d /h/p/s/x", "aW=. dR=s dW=s dW=s/x", "writable @; hide directory @/s"},
		{"FS-22 link inside, target inside", "l /h/p/d/l t/x;f /h/p/d/t/x", "dR=d aR=d/l",
			"hide directory @/d; reveal @/d/l from @/d/t/x make l"},
		{"FS-22 link inside, target outside", "l /h/p/d/l ../x;f /h/p/x", "dR=d aR=d/l", "hide directory @/d"},
		{"FS-22 link inside, target denied", "l /h/p/d/l t;f /h/p/d/t", "dR=d dR=d/t aR=d/l", "hide directory @/d"},
		{"FS-22 link inside, target around a deny", "l /h/p/d/l t;f /h/p/d/t/k", "dR=d dR=d/t/k aR=d/l",
			"hide directory @/d"},
		{"FS-22 link inside, target is the directory", "l /h/p/d/l .;f /h/p/d/k", "dR=d aR=d/l", "hide directory @/d"},
		{"FS-22 the root", "f /h/p/x;d /etc;f /swap;l /bin usr/bin;d /usr/bin;d /proc/1;d /dev;d /sys", "dR=/",
			"hide directory /etc; hide directory /h; hide file /swap; hide directory /usr"},
		{"FS-22 the root and an allow", "f /h/p/x;d /etc;d /usr/bin", "dR=/ aR=/usr aR=.",
			"hide directory /etc; hide directory /h; reveal @ make p"},
		{"FS-22 the root and a write grant of a file in it", "f /swap;d /h/p", "dR=/ aR=/h aW=/swap", "writable /swap"},
		{"FS-57 case 32", "f /h/p/keys/sub/b", "cred=keys aR=keys/sub aW=.", "writable @; hide directory @/keys"},
		{"FS-57 an allow at the credential", "f /h/p/k", "cred=k aR=k aW=k", "hide file @/k"},
		{"FS-57 the root", "d /h/p;d /usr", "cred=/ aR=/ aR=/usr", "hide directory /h; hide directory /usr"},
		{"FS-23 srt's binary in a hidden directory", "f /h/bin/srt;f /h/p/x", "cred=~ keep=/h/bin/srt own=/h/bin/srt aW=/h",
			"hide directory /h; reveal /h/bin/srt make bin,bin/srt"},
		{"FS-23 srt's binary itself denied", "f /h/p/srt", "dR=srt keep=/h/p/srt", ""},
		{"FS-51 own files in a write root", "f /h/p/bin/srt;f /h/p/s.json", "aW=. own=/h/p/bin/srt own=/h/p/s.json own=/h/p/no",
			"pin @/bin; writable @; read-only @/bin/srt; read-only @/s.json"},
		{"FS-24 ordinary", "f /etc/ssh/ssh_config.d/x", "ssh", "empty directory /etc/ssh/ssh_config.d"},
		{"FS-24 in a writable root", "f /etc/ssh/ssh_config.d/x", "ssh aW=/ root",
			"pin /etc/ssh; writable /etc; empty directory /etc/ssh/ssh_config.d"},
		{"FS-24 absent", "d /h/p", "ssh", ""},
		{"FS-24 read-denied by the person", "f /etc/ssh/ssh_config.d/x", "ssh dR=/etc/ssh/ssh_config.d",
			"hide directory /etc/ssh/ssh_config.d"},
		{"FS-41 directories between are pinned", "f /h/p/a/b/c/f;f /h/p/a/b/s", "aW=. dW=a/b/c/f dR=a/b/s",
			"pin @/a/b/c; pin @/a/b; pin @/a; writable @; read-only @/a/b/c/f; hide file @/a/b/s"},
		{"FS-41 no pins above the root", "f /h/p/a/w/x", "aW=a/w dW=a/w/x", "writable @/a/w; read-only @/a/w/x"},
		{"FS-41 no pins outside write roots", "f /h/p/a/b/x", "dR=a/b/x dW=a/b/x", "hide file @/a/b/x"},
		{"FS-41 the whole tree writable", "f /h/p/k;f /etc/pw;d /usr", "aW=/ dW=/h/p/k dR=/etc/pw",
			"pin @; writable /etc; hide file /etc/pw; writable /h; read-only @/k"},
		{"FS-41 a top-level directory itself", "d /etc;d /h/p", "aW=/ dW=/etc", "read-only /etc"},
		{"FS-42 case 25", "l /h/p/.vscode vs;d /h/p/vs", "aW=.", "pin @/.vscode; writable @; read-only @/vs"},
		{"FS-42 case 26", "l /h/p/.env s/env;f /h/p/s/env", "dR=.env aW=.", "pin @/.env; pin @/s; writable @; hide file @/s/env"},
		{"FS-42 a link on the way", "l /h/p/d e;f /h/p/e/f", "dW=d/f aW=.", "pin @/d; pin @/e; writable @; read-only @/e/f"},
		{"FS-42 a link deeper down", "l /h/p/x/y/d ../../e;f /h/p/e/f", "dW=x/y/d/f aW=.",
			"pin @/x/y/d; pin @/x/y; pin @/e; pin @/x; writable @; read-only @/e/f"},
		{"FS-42 a directory left again by a link", "l /h/p/l c/../f;d /h/p/c;f /h/p/f", "dW=l aW=.",
			"pin @/c; pin @/l; writable @; read-only @/f"},
		{"FS-42 a link at the top", "l /lnk h/p/f;f /h/p/f", "dW=/lnk aW=/ root", "pin @; pin /lnk; writable /h; read-only @/f"},
		{"FS-42 case 03 dangling and outward links", "l /h/p/.gitconfig /h/s/gone;l /h/p/.bashrc /h/s/rc;f /h/s/rc", "aW=.",
			"pin @/.bashrc; pin @/.gitconfig; writable @"},
		{"FS-42 a link loop is held in place", "l /h/p/a b;l /h/p/b a", "dW=a aW=.", "pin @/a; pin @/b; writable @"},
		{"FS-7 a read deny that leads to the root", "l /h/p/d/up /;f /h/p/d/x", "dR=d/up", "hide directory @/d"},
		{"FS-7 every name leading there", "l /h/p/l d;f /h/p/d/x", "dR=l/x", "hide file @/d/x"},
		{"FS-11 case 19 a directory without search permission", "f /h/p/locked/s;d /h/p/locked mode=0",
			"dR=locked/s aR=locked/s", "hide directory @/locked"},
		{"FS-11 write deny beneath one", "d /h/p/locked mode=0;f /h/p/locked/s", "dW=locked/s aW=.", "writable @; read-only @/locked"},
		{"FS-47 beneath /dev and /proc", "f /dev/sda;d /proc/bus;d /sys/fs/x;d /h/p",
			"dR=/dev/sda dR=/proc/bus dR=/sys/fs dR=/dev/none dW=/dev/sda aW=/dev/shm aW=/sys/fs/x aR=/sys/fs/x",
			"hide file /dev/sda late; hide directory /proc/bus late; hide directory /sys/fs late; reveal /sys/fs/x make x late"},
		{"FS-47 never writable", "d /sys/fs;f /dev/sda;d /h/p", "aW=/ dR=/sys/fs dR=/dev/sda",
			"hide file /dev/sda late; hide directory /sys/fs late"},
		{"FS-47 further proc mounts", "d /c/root/proc/1;d /h/p", "proc=/c/root/proc aR=/c/root/proc proc=/none", "hide directory /c/root/proc"},
		{"FS-56 case 34", "f /h/p/.bashrc;f /h/p/tok;d /c/proc", "disabled dR=tok dW=. proc=/c/proc",
			"writable /c; hide directory /c/proc"},
		{"FS-28 extra paths", "d /tmp/claude;d /h/p", "extra=/tmp/claude extra=/tmp/none extra=/dev/null", "writable /tmp/claude"},
		{"FS-28 extra path in a hidden directory", "d /tmp/claude;d /h/p", "dR=/tmp extra=/tmp/claude",
			"hide directory /tmp; reveal writable /tmp/claude make claude"},
		{"FS-28 extra path in the hidden home", "d /h/.npm/_logs;d /h/p", "dR=~ aR=. extra=/h/.npm/_logs",
			"hide directory /h; reveal @ make p"},
		{"FS-28 an extra path that is a link", "l /tmp/claude /h/p", "extra=/tmp/claude", ""},
		{"attack 25 a FIFO", "p /h/p/ff", "dR=ff dW=ff aW=.", "writable @; hide file @/ff"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := newFakeTree(t, tt.tree)
			if tree.objects["/h/p"] == nil {
				tree.add("/h/p", 'd')
			}
			plan, _ := built(t, tree, tt.rules)
			want := strings.ReplaceAll(tt.want, "; ", "\n")
			if d := cmp.Diff(want, listing(plan)); d != "" {
				t.Errorf("steps (-want +got):\n%s", d)
			}
		})
	}
}

func TestBuildErrors(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		reason            error
		entry             string
	}{
		{"FS-55 read pattern", "", "dR=a* aW=.", ErrPattern, "filesystem.denyRead.0"},
		{"FS-16 read pattern that is also a name", "d /h/p/x*y", "dR=x*y", ErrPattern, "filesystem.denyRead.0"},
		{"FS-55 write pattern", "", "aW=. dW=k dW=a*", ErrPattern, "filesystem.denyWrite.1"},
		{"FS-57 credential pattern", "", "cred=*.key", ErrPattern, "credentials.files.0.path"},
		{"FS-30 case 5 absent file", "", "aW=. dW=new", ErrAbsent, "filesystem.denyWrite.0"},
		{"FS-30 case 5 absent parents", "", "aW=. dW=k dW=nd/x/y", ErrAbsent, "filesystem.denyWrite.1"},
		{"FS-30 dangling link into a root", "l /h/p/l gone", "aW=. dW=l", ErrAbsent, "filesystem.denyWrite.0"},
		{"FS-30 own directory without write permission", "d /h/p/o mode=555", "aW=. dW=o/x", ErrAbsent, "filesystem.denyWrite.0"},
		{"FS-30 root creates anywhere", "d /h/p/o uid=7 mode=555", "root aW=. dW=o/x", ErrAbsent, "filesystem.denyWrite.0"},
		{"FS-30 a group-writable directory of another user", "d /h/p/o uid=7 mode=777", "aW=. dW=o/x", ErrAbsent,
			"filesystem.denyWrite.0"},
		{"FS-10 absent read deny", "", "dR=none", ErrAbsent, "filesystem.denyRead.0"},
		{"FS-10 absent read deny beneath a file", "f /h/p/k", "dR=k/x", ErrAbsent, "filesystem.denyRead.0"},
		{"FS-57 absent credential", "", "cred=~/.netrc", ErrAbsent, "credentials.files.0.path"},
		{"FS-11 not inspectable in the root", "f /bad eio", "dR=/bad", ErrUninspected, "filesystem.denyRead.0"},
		{"FS-11 not inspectable in the writable root", "f /bad eio", "aW=/ dW=/bad root", ErrUninspected, "filesystem.denyWrite.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := newFakeTree(t, "f /h/p/k;"+tt.tree)
			in := input(t, tt.rules)
			tree.uid = in.UID
			plan, err := Build(tree, in)
			var ee *EntryError
			if !errors.As(err, &ee) || !errors.Is(err, tt.reason) || plan != nil {
				t.Fatalf("Build = %v, %v, want %v", plan, err, tt.reason)
			}
			if !strings.HasPrefix(ee.Entry, tt.entry+" (") || ee.Advice == "" || !strings.HasPrefix(ee.Path, "/") {
				t.Errorf("entry %q path %q advice %q", ee.Entry, ee.Path, ee.Advice)
			}
		})
	}
}

func TestBuildAbsentIsEnforcedOtherwise(t *testing.T) {
	long := strings.Repeat("n", maxName+1)
	for name, rules := range map[string]string{
		"FS-10 hidden directory":     "dR=sec dR=sec/none",
		"FS-10 hidden whole tree":    "dR=/ dR=/h/none",
		"FS-57 hidden directory":     "cred=sec cred=sec/none",
		"FS-30 hidden directory":     "aW=. dR=sec dW=sec/none",
		"FS-11 impossible name":      "aW=. dW=" + long + " dR=" + long,
		"FS-30 protected name":       "aW=. dW=.vscode/none",
		"FS-47 nothing to hide":      "dR=/proc/none dR=/dev/none aW=/ dW=/dev/none",
		"FS-26 no root":              "dW=none",
		"FS-11 write deny, no roots": "dW=/etc/bad",
	} {
		t.Run(name, func(t *testing.T) {
			built(t, newFakeTree(t, "d /h/p/sec;d /h/p/.vscode;f /etc/bad eio"), rules)
		})
	}
}

func TestBuildWarnings(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		want              []string // parts of the one line each
	}{
		{"case 20 absent write grant", "", "aW=. aW=~/.npm", []string{`filesystem.allowWrite.1 ("~/.npm") does not exist`}},
		{"FS-8 case 28 link", "l /h/p/sl other;d /h/p/other", "aW=sl", []string{`("sl") leads through a link to "/h/p/other"`}},
		{"FS-8 link on the way", "l /h/p/l /h/o;d /h/o/x", "aW=l/x", []string{`("l/x") leads through a link to "/h/o/x"`}},
		{"FS-8 dangling link", "l /h/p/l /h/o", "aW=l", []string{`leads through a link to "/h/o"`}},
		{"FS-55 patterns", "", "aW=a* aR=b?", []string{`filesystem.allowRead.0 ("b?") is a pattern`,
			`filesystem.allowWrite.0 ("a*") is a pattern`}},
		{"FS-16 case 16 a pattern that names a link", "l /h/p/l*k x;d /h/p/x", "aW=l*k", []string{`("l*k") is a pattern`}},
		{"FS-10 absent read allow", "", "aR=none", nil},
		{"FS-10 absent read allow in a hidden directory", "d /h/p/s", "dR=s aR=s/none",
			[]string{`("s/none") does not exist, so nothing is re-allowed in what filesystem.denyRead.0 ("s") hides`}},
		{"FS-57 read allow in a credential", "d /h/p/s/x", "cred=s aR=s/x",
			[]string{`("s/x") has no effect: credentials.files.0.path ("s") hides it`}},
		{"FS-22 write grant of a hidden file", "f /h/p/s", "dR=s aW=s", []string{`("s") has no effect: filesystem.denyRead.0 ("s")`}},
		{"FS-22 link to the outside", "l /h/p/s/l /h/o;f /h/o", "dR=s aR=s/l", []string{`("s/l") is a link to "/h/o"`}},
		{"FS-35 write grant of a protected name", "d /h/p/.idea/x", "aW=.idea/x", []string{`(".idea/x") grants nothing: protected name .idea`}},
		{"FS-11 read allow that cannot be inspected", "f /h/p/b eio", "aR=b", []string{`("b") cannot be inspected`}},
		{"FS-28 defaults are silent", "l /tmp/claude /h/p", "extra=/tmp/claude extra=/tmp/none extra=/h/.npm/_logs", nil},
		{"FS-26 a read-only grant is only noted", "", "aW=. dW=.", nil},
		{"attack 23 a name with a line feed", "", "aW=a\x0b\x1bb", []string{`("a\v\x1bb") does not exist`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Contains(tt.rules, "\x0b") {
				in := input(t, "")
				in.Rules.AllowWrite = []policy.PathRule{{Key: "k", Entry: "a\v\x1bb", Path: "/h/p/a\v\x1bb"}}
				plan, err := Build(newFakeTree(t, "d /h/p"), in)
				if err != nil || len(plan.Warnings) != 1 || !strings.Contains(plan.Warnings[0], tt.want[0]) {
					t.Fatalf("warnings %q, %v", plan.Warnings, err)
				}
				return
			}
			plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
			if len(plan.Warnings) != len(tt.want) {
				t.Fatalf("warnings %q, want %d", plan.Warnings, len(tt.want))
			}
			for i, part := range tt.want {
				if !strings.Contains(plan.Warnings[i], part) {
					t.Errorf("warning %q does not say %q", plan.Warnings[i], part)
				}
			}
		})
	}
}

func TestBuildNotes(t *testing.T) {
	tests := []struct{ name, tree, rules, want string }{
		{"FS-26 deny above a grant names both", "", "aW=. dW=~", `filesystem.allowWrite.0 (".") is read-only: filesystem.denyWrite.0 ("~")`},
		{"FS-45 hard link of a hidden file", "f /h/p/k links=2", "dR=k", `"/h/p/k" is protected`},
		{"FS-45 hard link of a protected name", "f /h/p/.bashrc links=3", "aW=.", `has 3 hard links`},
		{"FS-47 write grant", "", "aW=/dev/shm", "filesystem.allowWrite.0"},
		{"FS-47 read allow", "", "aR=/proc/1", "filesystem.allowRead.0"},
		{"FS-11 stand-in", "f /h/p/b eio", "dR=b aR=.", `"/h/p" is hidden in its place`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
			if !strings.Contains(strings.Join(plan.Notes, "\n"), tt.want) {
				t.Errorf("notes %q do not say %q", plan.Notes, tt.want)
			}
		})
	}
}

func TestBuildDir_FS49(t *testing.T) {
	tests := []struct {
		name, tree, rules, want string
		warns                   bool
	}{
		{"plain", "", "", "/h/p", false},
		{"link", "l /l /h/p", "cwd=/l", "/h/p", false},
		{"case 01 re-allowed", "", "dR=.. aR=.", "/h/p", false},
		{"hidden, home visible", "", "dR=.", "/h", true},
		{"hidden with the home", "", "dR=..", "/", true},
		{"hidden, no home", "", "dR=. home=", "/", true},
		{"only beneath it is re-allowed", "d /h/p/sub", "dR=. aR=sub", "/h", true},
		{"in /proc", "d /proc/sys", "cwd=/proc/sys", "/proc/sys", false},
		{"disabled", "", "disabled dR=.", "/h/p", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
			if plan.Dir != tt.want || (len(plan.Warnings) > 0) != tt.warns {
				t.Errorf("starts in %q with warnings %q, want %q", plan.Dir, plan.Warnings, tt.want)
			}
		})
	}
}

func TestBuildWritable(t *testing.T) {
	tests := []struct {
		name, tree, rules, roots, writable string
		root                               bool
	}{
		{"none", "", "", "", "", false},
		{"roots", "f /h/p/f;d /h/o", "aW=. aW=/h/o aW=f", "/h/o /h/p", "/h/o /h/p", false},
		{"file", "f /h/p/f", "aW=f", "/h/p/f", "/h/p/f-", false},
		{"revealed", "d /h/p/s/w", "aW=. dR=s aW=s/w", "/h/p", "/h/p /h/p/s/w", false},
		{"denied", "", "aW=. dW=.", "", "", false},
		{"everything", "f /h/p/k", "aW=/ aW=. dW=k", "/", "/", true},
		{"FS-56", "", "disabled", "/", "/", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
			var writable []string
			for _, w := range plan.Writable {
				if !w.Dir {
					w.Path += "-"
				}
				writable = append(writable, w.Path)
			}
			sort.Strings(writable)
			if got := strings.Join(plan.WriteRoots, " "); got != tt.roots {
				t.Errorf("write roots %q, want %q", got, tt.roots)
			}
			if got := strings.Join(writable, " "); got != tt.writable || plan.RootWritable != tt.root {
				t.Errorf("writable %q (root %v), want %q (%v)", got, plan.RootWritable, tt.writable, tt.root)
			}
		})
	}
}

func TestBuildAsksTwice_FS11(t *testing.T) {
	tree := &flakyTree{fakeTree: newFakeTree(t, "f /h/p/k"), left: map[string]int{"/h/p/k": 1, "/h/p": 1}, err: syscall.ESTALE}
	plan, err := Build(tree, input(t, "dR=k aW=."))
	if err != nil || listing(plan) != "writable @\nhide file @/k" {
		t.Fatalf("%v, %v", plan, err)
	}
	tree = &flakyTree{fakeTree: newFakeTree(t, "f /h/p/k"), left: map[string]int{"/h/p/k": 2}, err: syscall.EIO}
	if plan, err = Build(tree, input(t, "dR=k")); err != nil || listing(plan) != "hide directory @" {
		t.Fatalf("%v, %v", plan, err)
	}
}

// flakyTree answers the first questions about some paths with an error.
type flakyTree struct {
	*fakeTree
	left map[string]int
	err  error
}

func (f *flakyTree) Lstat(p string) (Info, error) {
	if f.left[p] > 0 {
		f.left[p]--
		return Info{}, f.err
	}
	return f.fakeTree.Lstat(p)
}

func TestBuildSize_FS65(t *testing.T) {
	in := input(t, "aW=. dW=k")
	tree := newFakeTree(t, "f /h/p/k;f /h/p/.bashrc;d /h/p/a/.idea")
	plan, err := Build(tree, in)
	if err != nil {
		t.Fatal(err)
	}
	in.MountMax, in.MountsInUse = len(plan.Steps)+7, 7
	if _, err = Build(tree, in); err != nil {
		t.Fatalf("at the limit: %v", err)
	}
	in.MountsInUse++
	_, err = Build(tree, in)
	var se *SizeError
	if !errors.As(err, &se) || !errors.Is(err, ErrTooManyMount) {
		t.Fatalf("past the limit: %v", err)
	}
	if se.Mounts != in.MountMax+1 || se.Max != in.MountMax || se.Mandatory != 3 { // .bashrc, .idea and the pin of a
		t.Errorf("counts %+v", se)
	}
}
