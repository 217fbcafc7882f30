package model

import (
	"slices"
	"strings"
	"testing"
)

// lists makes a policy from words such as "dR=a,b aW=. dW=prot".
func lists(text string) Policy {
	var p Policy
	to := map[string]*[]Entry{"dR": &p.DenyRead, "aR": &p.AllowRead, "aW": &p.AllowWrite, "dW": &p.DenyWrite, "cred": &p.Credential}
	for _, word := range strings.Fields(text) {
		key, names, _ := strings.Cut(word, "=")
		for _, n := range strings.Split(names, ",") {
			name, marked := strings.CutPrefix(n, "!")
			*to[key] = append(*to[key], Entry{Text: name, Marked: marked})
		}
	}
	return p
}

// items makes a tree from words such as "a/ a/f lk->a", beneath the working directory.
func items(text string) []Item {
	list := []Item{{Path: Home, Kind: Dir}, {Path: "/home/ext", Kind: Dir}, {Path: "/home/ext/k.pem", Kind: File}, {Path: Cwd, Kind: Dir}}
	for _, word := range strings.Fields(text) {
		name, target, link := strings.Cut(word, "->")
		switch dir, ok := strings.CutSuffix(name, "/"); {
		case link:
			list = append(list, Item{Path: Cwd + "/" + name, Kind: Link, Target: target})
		case ok:
			list = append(list, Item{Path: Cwd + "/" + dir, Kind: Dir})
		default:
			list = append(list, Item{Path: Cwd + "/" + name, Kind: File, Text: "text"})
		}
	}
	return list
}

const no = "EACCES|EPERM|EROFS" // refused (FS-31)

// cases are those of the chapter that single operations can state, each "operation path [path]: want".
var cases = []struct{ name, tree, lists, ops string }{
	{"case 1", "", "aW=.", "create f: ok; create ../g: " + no},
	{"case 2", "conf prot/", "aW=. dW=conf,prot", "write conf: " + no + "; unlink conf: EBUSY; create prot/n: " + no + "; create n: ok"},
	{"case 3", "prot/ prot/sub/", "aW=.,prot/sub dW=prot", "create prot/sub/n: " + no},
	{"case 5", "ready/", "aW=. dW=new,nd/x/y", "create new: " + no + "; mkdir nd: " + no + "; rename ready nd: " + no + "; lstat new: ENOENT"},
	{"case 6", "f", "aW=. dW=f/x", "write f: " + no + "; unlink f: EBUSY"},
	{"case 7", "sec/ sec/k", "dR=sec", "list sec: ok; read sec/k: ENOENT; create sec/n: ok"},
	{"case 8", ".env", "dR=.env aR=.", "read .env: EACCES; stat .env: ok; append .env: " + no},
	{"case 9", ".env", "dR=.env aR=.env", "read .env: ok"},
	{"case 9 allowWrite", ".env", "dR=.env aW=.env", "read .env: EACCES; append .env: " + no},
	{"case 10", "sec/ sec/k lk->sec/k", "dR=sec/k aR=lk", "read sec/k: EACCES; read lk: EACCES"},
	{"stricter than FS-9: a link in a write root", "w/ w/l->../sec sec/ sec/k", "dR=sec aR=w/l/k aW=w", "read sec/k: ENOENT; read w/l/k: ENOENT"},
	{"FS-9 a link where nothing can be written", "w/ l->sec sec/ sec/k", "dR=sec aR=l/k aW=w", "read sec/k: ok; read l/k: ok"},
	{"FS-9 a link in a write root to what is not denied", "w/ w/l->../sec sec/ sec/k sec/n", "dR=sec aR=w/l/k,sec/k aW=w", "read w/l/k: ok; read sec/n: ENOENT"},
	{"case 11", "a/ a/f a/b/ a/b/f a/b/c/ a/b/c/f a/b/c/d/ a/b/c/d/f", "dR=a,a/b/c aR=a/b,a/b/c/d",
		"read a/b/f: ok; read a/b/c/d/f: ok; read a/f: ENOENT; read a/b/c/f: ENOENT"},
	{"case 12", "build/", "dR=~ aR=. aW=build", "create build/o: ok; create n: " + no + "; read ../ext/k.pem: ENOENT"},
	{"case 13", "sec/ sec/k", "dR=sec aW=sec", "read sec/k: ok; create sec/n: ok"},
	{"case 14", "a/ a/k.pem ext->../ext", "dR=**/*.pem", "read ../ext/k.pem: EACCES; read a/k.pem: EACCES"},
	{"case 14 anchored", "a/ a/k.pem", "dR=*.pem", "read a/k.pem: ok"},
	{"case 15", "x*y/ x*y/k xay/ xay/k", "dR=x*y", "read x*y/k: ENOENT; read xay/k: ENOENT"},
	{"case 15 marked", "x*y/ x*y/k xay/ xay/k", "dR=!x*y", "read x*y/k: ENOENT; read xay/k: ok"},
	{"case 16", "t[user-id]/ t[user-id]/k", "dR=t[user-id]", "read t[user-id]/k: ENOENT"},
	{"case 16 write", "d/ l*k->d", "aW=l*k", "create l*k/n: " + no},
	{"case 20", "", "aW=.", "mkdir .git: ok; mkdir .git/hooks: ENOENT; create .bashrc: " + no},
	{"case 21", ".git/ .git/HEAD .git/hooks/ .git/config", "aW=.", "create .git/hooks/h: " + no + "; write .git/config: " + no + "; create .git/index: ok"},
	{"case 22", ".git", "aW=.", "unlink .git: EBUSY; write .git: " + no},
	{"case 23", "a/ a/.idea/ a/b/ a/b/.bashrc a/b/c/ a/b/c/.bashrc UP/ UP/.BashRC", "aW=.",
		"write a/b/.bashrc: " + no + "; create a/.idea/x: " + no + "; write UP/.BashRC: " + no + "; write a/b/c/.bashrc: ok"},
	{"case 24", "d/ d/.git/ d/.git/HEAD d/f", "aW=.", "rename d e: EBUSY; rename d/f d/g: ok"},
	{"case 25", "vs/ .vscode->vs", "aW=.", "unlink .vscode: EBUSY; create vs/n: " + no},
	{"case 26", "s/ s/env .env->s/env", "dR=.env aW=.", "unlink .env: EBUSY; read s/env: EACCES; rename s t: EBUSY"},
	{"case 27", "l->../ext/k.pem", "aW=.", "write l: " + no + "; link ../ext/k.pem h: EXDEV"},
	{"case 28", "sl->../ext", "aW=sl", "create sl/n: " + no + "; create ../ext/n: " + no},
	{"case 32", "keys/ keys/sub/ keys/sub/b", "cred=keys aR=keys/sub aW=.", "read keys/sub/b: ENOENT; list keys: ok"},
	{"FS-22 a link to another match", "s/ s/lk->../../ext t/", "dR=s,../ext aR=s/lk", "read s/lk/k.pem: ENOENT"},
	{"FS-22 a file in a match", "sec/ sec/k", "dR=s* aW=sec/k", "read sec/k: ok; append sec/k: ok; list sec: ok"},
	{"FS-31 memory", "sec/ sec/k", "dR=s* aW=. dW=*/*.key", "create sec/n.key: ok; tmpfile sec/n: ok; link sec/k n: ENOENT"},
	{"FS-35 a link from where nothing can be written", ".vscode->../ext", "aW=~/ext", "create .vscode/tasks.json: " + no + "; create ../ext/n: " + no},
	{"FS-35 a dangling one", ".bashrc->../ext/rc", "aW=~/ext", "create ../ext/rc: " + no + "; create ../ext/n: ok"},
	{"FS-37 a .git file as write root", ".git", "aW=.git", "write .git: " + no},
	{"git's doors as write roots", ".git/ .git/HEAD .git/commondir .git/config.worktree", "aW=.git/commondir,.git/config.worktree",
		"write .git/commondir: " + no + "; write .git/config.worktree: " + no},
	{"git's doors that are missing", ".git/ .git/HEAD", "aW=.", "create .git/commondir: " + no + "; create .git/config.worktree: " + no},
	{"FS-10 beneath a file", "f", "dR=f/x aW=.", "rename f g: ok"},
	{"FS-10 later", "", "dR=s aW=.", "mkdir s/t: ENOENT; mkdir t: ok"},
	{"FS-55 later", "", "dW=*.pem aW=.", "create a.pem: " + no + "; create a: ok"},
}

// TestCases holds the model against the chapter's own cases.
func TestCases(t *testing.T) {
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			w, err := Start(items(tt.tree), lists(tt.lists), false)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(tt.ops, "; ") {
				text, want, _ := strings.Cut(line, ": ")
				words := append(strings.Fields(text), "")
				op := Op{Do: words[0], A: clean(words[1])}
				if words[2] != "" {
					op.B = clean(words[2])
				}
				got := w.Judge(op)
				var all []string
				if got.OK {
					all = append(all, "ok")
				}
				all = append(all, got.Errs...)
				for _, part := range strings.Split(want, "|") {
					if !slices.Contains(all, part) || got.OK != (want == "ok") {
						t.Errorf("%s: %v, want %s", text, all, want)
					}
				}
			}
		})
	}
}

func clean(p string) string {
	if rest, ok := strings.CutPrefix(p, "../"); ok {
		return Home + "/" + rest
	}
	return Cwd + "/" + p
}
