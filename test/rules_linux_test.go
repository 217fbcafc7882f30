package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"testing"
)

// ruleTree is what the lists of FuzzFS_Rules can name, beneath the working directory. Directories end in "/".
var ruleTree = []string{"a/", "a/f", "a/g", "a/b/", "a/b/f", "a/b/c/", "a/b/c/f", "a/b/c/g", "a/b/d/", "a/b/d/f", "e/", "e/f", "e/h/", "e/h/f", "f"}

// rules are the four lists as names of ruleTree without the slash, and whether each name is a directory.
type rules struct{ dr, ar, aw, dw map[string]bool }

// rulesFrom takes two bits of each byte for the list and the rest for the entry. Sixteen is the working directory.
func rulesFrom(data []byte) (rules, cfg) {
	r := rules{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	var c cfg
	for _, b := range data[:min(len(data), 8)] {
		name := "."
		if i := int(b>>2) % (len(ruleTree) + 1); i < len(ruleTree) {
			name = strings.TrimSuffix(ruleTree[i], "/")
		}
		set, entries := r.dr, &c.dr
		switch b & 3 {
		case 1:
			set, entries = r.ar, &c.ar
		case 2:
			set, entries = r.aw, &c.aw
		case 3:
			set, entries = r.dw, &c.dw
		}
		set[name] = true
		*entries = append(*entries, name)
	}
	return r, c
}

// ways calls f with a path and every directory above it up to the working directory, deepest first, until f is done.
func ways(p string, f func(x string) (done bool)) {
	for ; !f(p) && p != "."; p = path.Dir(p) {
	}
}

// visible is FS-22: the deepest rule that covers a location decides, and of two at one place the allow.
func (r rules) visible(p string, isDir func(string) bool) (seen bool) {
	seen = true
	ways(p, func(x string) bool {
		switch {
		case r.ar[x], r.aw[x] && (isDir(x) || !r.dr[x]):
			return true
		case r.dr[x]:
			seen = false
			return true
		}
		return false
	})
	return seen
}

// writable is FS-26: a write root covers it, and no denyWrite.
func (r rules) writable(p string) (allowed bool) {
	ways(p, func(x string) bool {
		if r.dw[x] {
			allowed = false
			return true
		}
		allowed = allowed || r.aw[x]
		return false
	})
	return allowed
}

// FuzzFS_Rules compares what real programs can read and write under random lists with a plain statement of FS-22 and
// FS-26, on the host.
func FuzzFS_Rules(f *testing.F) {
	const dr, ar, aw, dw = 0, 1, 2, 3
	entry := func(list int, name string) byte {
		for i, n := range ruleTree {
			if strings.TrimSuffix(n, "/") == name {
				return byte(i<<2 | list)
			}
		}
		return byte(len(ruleTree)<<2 | list)
	}
	f.Add([]byte{})
	f.Add([]byte{entry(aw, "."), entry(dw, "a/b"), entry(dr, "e")})
	f.Add([]byte{entry(dr, "."), entry(ar, "a"), entry(aw, "a/b"), entry(dw, "a/b/c")})
	f.Add([]byte{entry(dr, "a"), entry(ar, "a/b"), entry(dr, "a/b/c"), entry(aw, "a/b/c/f"), entry(aw, ".")})
	f.Add([]byte{entry(dr, "f"), entry(aw, "f"), entry(ar, "f")})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, who := range accounts {
			r, c := rulesFrom(data)
			checkRules(newBox(t, who), r, c)
		}
	})
}

func checkRules(b *box, r rules, c cfg) {
	b.t.Helper()
	dirs := map[string]bool{".": true}
	args := []string{probePath}
	var files []string
	for _, name := range ruleTree {
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			dirs[dir] = true
			b.mkdir(dir, 0o755)
			continue
		}
		files = append(files, name)
		b.file(name, "text of "+name)
		p := b.abs(name)
		args = append(args, "holds", p, "text", ";", "append", p, ";", "create", p+".new", ";")
	}
	out := b.run(c, args...)
	got := strings.Split(out.stdout, "\n")
	if out.status != 0 || len(got) != 3*len(files)+1 {
		b.t.Fatalf("%s\n%v", c.json(), out)
	}
	isDir := func(p string) bool { return dirs[p] }
	for i, name := range files {
		seen, dir := r.visible(name, isDir), path.Dir(name)
		if (got[3*i] == "ok") != seen {
			b.t.Errorf("%s\nreading %s: %s, want it visible: %v", c.json(), name, got[3*i], seen)
		}
		text, err := os.ReadFile(b.abs(name))
		b.must(err)
		if written, want := string(text) != "text of "+name, seen && r.writable(name); written != want {
			b.t.Errorf("%s\nwriting %s: %s; the host's file is written: %v, want %v", c.json(), name, got[3*i+1], written, want)
		}
		_, err = os.Lstat(b.abs(name + ".new"))
		if made, want := err == nil, r.visible(dir, isDir) && r.writable(dir); made != want {
			b.t.Errorf("%s\ncreating in %s: %s; on the host: %v, want %v", c.json(), dir, got[3*i+2], made, want)
		}
	}
	if b.t.Failed() {
		b.t.Log(fmt.Sprint(out))
	}
}

// TestFS_22_26_RandomLists does the same for lists drawn from a fixed sequence.
func TestFS_22_26_RandomLists(t *testing.T) {
	const count = 60
	eachAlong(t, func(t *testing.T, b *box) {
		draw := rand.New(rand.NewPCG(22, 26))
		for i := range count {
			data := make([]byte, 1+draw.IntN(8))
			for j := range data {
				data[j] = byte(draw.Uint32())
			}
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				r, c := rulesFrom(data)
				checkRules(newBox(t, b.who), r, c)
			})
		}
	})
}
