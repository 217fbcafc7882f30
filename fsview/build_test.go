package fsview

import (
	"fmt"
	"strings"
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
		case "program":
			in.Program = value
		case "own":
			in.OwnFiles = append(in.OwnFiles, value)
		case "private":
			in.Private = append(in.Private, value)
		case "privateFile":
			in.PrivateFiles = append(in.PrivateFiles, value)
		case "trust":
			in.TrustFiles = append(in.TrustFiles, value)
		case "trustDir":
			in.TrustDirs = append(in.TrustDirs, value)
		case "keep":
			in.Keep = append(in.Keep, value)
		case "proc":
			in.KernelMounts = append(in.KernelMounts, value)
		case "mask":
			in.Masks, in.FakeContent = append(in.Masks, maskRules(absoluteIn("/h/p", value))...), fakeOf
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

// absoluteIn is a path as a relative entry in dir would be taken.
func absoluteIn(dir, p string) string {
	if strings.HasPrefix(p, "/") {
		return p
	}
	return join(dir, p)
}

// built makes a plan that must succeed, executes it, and checks that nothing protected can be moved.
func built(t testing.TB, tree *fakeTree, words string) (*Plan, *view) {
	t.Helper()
	in := input(t, words)
	tree.uid, in.Mounts = in.UID, tree.mounts
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
		{"FS-30 case 11 another user's directory", "d /h/p;d /etc", "aW=/ dW=/etc/absent dW=/.mcp.json", "pin @; writable /h"},
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
			"pin /etc/ssh; pin @; writable /etc; empty directory /etc/ssh/ssh_config.d; writable /h"},
		{"FS-24 absent", "d /h/p", "ssh", ""},
		{"FS-24 read-denied by the person", "f /etc/ssh/ssh_config.d/x", "ssh dR=/etc/ssh/ssh_config.d",
			"hide directory /etc/ssh/ssh_config.d"},
		{"FS-41 directories between are pinned", "f /h/p/a/b/c/f;f /h/p/a/b/s", "aW=. dW=a/b/c/f dR=a/b/s",
			"pin @/a/b/c; pin @/a/b; pin @/a; writable @; read-only @/a/b/c/f; hide file @/a/b/s"},
		{"FS-41 no pins above the root", "f /h/p/a/w/x", "aW=a/w dW=a/w/x", "writable @/a/w; read-only @/a/w/x"},
		{"FS-41 no pins outside write roots", "f /h/p/a/b/x", "dR=a/b/x dW=a/b/x", "hide file @/a/b/x"},
		{"FS-41 the whole tree writable", "f /h/p/k;f /etc/pw;d /usr", "aW=/ dW=/h/p/k dR=/etc/pw",
			"pin @; writable /etc; hide file /etc/pw; writable /h; read-only @/k"},
		{"FS-41 a top-level directory itself", "d /etc;d /h/p", "aW=/ dW=/etc", "pin @; read-only /etc; writable /h"},
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
		{"FS-47 no such thing in the sandbox", "d /proc/12/fd;l /dev/disk/x ../sda;f /dev/sda;l /h/p/e /dev/sda", "dR=/proc/12/fd dR=/dev/disk/x dR=e aW=.",
			"pin @/e; hide file /dev/sda late; writable @"},
		{"FS-47 the whole of both", "d /proc;d /dev;d /h/p", "dR=/proc dR=/dev aR=/dev/null", "hide directory /dev late; hide directory /proc late"},
		{"FS-47 never writable", "d /sys/fs;f /dev/sda;d /h/p", "aW=/ dR=/sys/fs dR=/dev/sda",
			"pin @; hide file /dev/sda late; writable /h; hide directory /sys/fs late"},
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
		{"attack 25 a FIFO that is write-denied", "p /h/p/a/ff", "dW=a/ff aW=.", "pin @/a; writable @; hide file @/a/ff"},
		{"attack 25 a FIFO with a protected name", "p /h/p/.bashrc", "aW=.", "writable @; hide file @/.bashrc"},
		{"attack 25 a FIFO outside of the write roots", "p /h/p/ff", "dW=ff", ""},
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
