package differential

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/test/differential/internal/model"
)

// The names that trees are made of.
var (
	dirNames  = []string{"a", "b", "c", "d", "sec", "build", "x*y", "xay", "[x]", "x", "t[user-id]", "node_modules", ".vscode", ".claude", "commands", "hooks"}
	fileNames = []string{"f", "g", "conf", ".env", "k.pem", "l.pem", "a*b", "aab", "n\xff.pem", "?", ".bashrc", ".mcp.json", ".BashRC", ".gitmodules", "config", "é"}
	linkNames = []string{"lk", "ld", "l*k", "lak", ".vscode", ".env", ".bashrc", "q"}
	newNames  = []string{"n1", "n2", "n3.pem", "new", ".bashrc", ".zshrc", ".idea", ".vscode", ".claude", ".git", "x1y", "sec", "conf", "absent", "build"}
)

// draw makes cases and operations from a sequence of numbers.
type draw struct {
	*rand.Rand
	count int // of texts given out
}

func newDraw(seed, index uint64) *draw { return &draw{Rand: rand.New(rand.NewPCG(seed, index))} }

func pick[T any](d *draw, list []T) T { return list[d.IntN(len(list))] }

// chance is true in so many of a hundred cases.
func (d *draw) chance(percent int) bool { return d.IntN(100) < percent }

func (d *draw) text() string {
	d.count++
	return fmt.Sprintf("text %d", d.count)
}

// tree draws 15 to 30 objects.
func (d *draw) tree() []model.Item {
	t := &tree{have: map[string]model.Kind{}}
	for _, dir := range []string{"/out", "/home", "/home/ext", model.Cwd} {
		t.add(model.Item{Path: dir, Kind: model.Dir})
	}
	if d.chance(50) {
		d.repository(t, model.Cwd)
	}
	for range 11 + d.IntN(14) {
		d.object(t)
	}
	return t.items
}

// tree is a list of items in the making.
type tree struct {
	items []model.Item
	have  map[string]model.Kind
}

func (t *tree) add(it model.Item) bool {
	if t.have[it.Path] != 0 || (it.Path != "/" && path.Dir(it.Path) != "/" && t.have[path.Dir(it.Path)] != model.Dir) {
		return false
	}
	t.have[it.Path] = it.Kind
	t.items = append(t.items, it)
	return true
}

// paths are those of a kind, all without one, in the order they were made.
func (t *tree) paths(kind model.Kind) []string {
	var list []string
	for _, it := range t.items {
		if kind == 0 || it.Kind == kind {
			list = append(list, it.Path)
		}
	}
	return list
}

// places are the directories in which a further object may be made, the working directory's first.
func (t *tree) places() []string {
	var list []string
	for _, p := range t.paths(model.Dir) {
		if strings.Count(p, "/") <= 5 && !strings.Contains(p, "/.git") {
			list = append(list, p)
		}
	}
	return list
}

func (d *draw) object(t *tree) {
	dir := pick(d, t.places())
	if d.chance(40) {
		dir = model.Cwd
	}
	at := func(names []string) string { return dir + "/" + pick(d, names) }
	switch n := d.IntN(100); {
	case n < 32:
		t.add(model.Item{Path: at(dirNames), Kind: model.Dir})
	case n < 70:
		t.add(model.Item{Path: at(fileNames), Kind: model.File, Text: d.text()})
	case n < 74:
		if files := t.paths(model.File); len(files) > 0 {
			t.add(model.Item{Path: at([]string{"h1", "h2"}), Kind: model.File, Same: pick(d, files)})
		}
	case n < 78:
		if dir != model.Cwd {
			d.repository(t, dir)
		}
	default:
		t.add(model.Item{Path: at(linkNames), Kind: model.Link, Target: d.target(t, dir)})
	}
}

// target draws where a link leads: to anything, near or far, or to nothing.
func (d *draw) target(t *tree, dir string) string {
	to := pick(d, t.paths(0))
	switch d.IntN(10) {
	case 0:
		to = path.Join(to, "nowhere")
	case 1:
		return "missing"
	}
	if path.Dir(to) == dir && d.chance(70) {
		return path.Base(to)
	}
	if path.Dir(to) == path.Dir(dir) && d.chance(70) {
		return "../" + path.Base(to)
	}
	return to
}

// repository draws the .git of a directory.
func (d *draw) repository(t *tree, dir string) {
	git := dir + "/.git"
	if d.chance(15) {
		t.add(model.Item{Path: git, Kind: model.File, Text: "no directory"})
		return
	}
	if !t.add(model.Item{Path: git, Kind: model.Dir}) {
		return
	}
	t.add(model.Item{Path: git + "/HEAD", Kind: model.File, Text: "ref"})
	if d.chance(60) {
		t.add(model.Item{Path: git + "/config", Kind: model.File, Text: d.text()})
	}
	if d.chance(50) {
		t.add(model.Item{Path: git + "/hooks", Kind: model.Dir})
		t.add(model.Item{Path: git + "/hooks/pre-commit", Kind: model.File, Text: d.text()})
	}
	if d.chance(30) {
		t.add(model.Item{Path: git + "/commondir", Kind: model.File, Text: "x"})
	}
}

// scenario draws a tree and a policy that the model has a statement about.
func (d *draw) scenario(root bool) scenario {
	for {
		sc := scenario{Root: root, Items: d.tree()}
		sc.Policy = d.policy(sc.Items)
		if _, err := model.Start(sc.Items, sc.Policy, root); err == nil && allowed(sc) {
			return sc
		}
	}
}

func (d *draw) policy(items []model.Item) model.Policy {
	entries := func(most int, f func() model.Entry) []model.Entry {
		var list []model.Entry
		for range d.IntN(most + 1) {
			list = append(list, f())
		}
		return list
	}
	entry := func() model.Entry { return d.entry(items) }
	pol := model.Policy{
		DenyRead:   entries(3, entry),
		AllowRead:  entries(3, entry),
		DenyWrite:  entries(3, entry),
		AllowWrite: entries(2, entry),
	}
	if d.chance(85) {
		pol.AllowWrite = append(pol.AllowWrite, model.Entry{Text: pick(d, []string{".", ".", ".", "~", "~", "~/p", "~/ext", "~/../out", "../ext", "~/.."})})
	}
	if d.chance(15) {
		e := d.entry(items)
		e.Marked = false
		pol.Credential = []model.Entry{e}
	}
	if d.chance(15) {
		pol.AllowGitConfig = true
	}
	if d.chance(40) {
		pol.SearchDepth = 1 + d.IntN(5)
	}
	return pol
}

// entry draws one entry of a list: an existing path, one that is not there, or a pattern, in one of the ways to write it.
func (d *draw) entry(items []model.Item) model.Entry {
	p := pick(d, items[2:]).Path
	if d.chance(50) {
		if in := beneath(items, model.Cwd); len(in) > 0 {
			p = pick(d, in)
		}
	}
	if strings.ToValidUTF8(p, "") != p {
		p = path.Dir(p)
	}
	switch n := d.IntN(100); {
	case n < 60:
	case n < 75:
		p = path.Join(p, pick(d, newNames))
		if d.chance(30) {
			p = path.Join(p, "x/y")
		}
	default:
		return model.Entry{Text: strings.ToValidUTF8(d.pattern(p), "\ufffd")}
	}
	return model.Entry{Text: d.spelling(p), Marked: strings.ContainsAny(p, "*?[]") && d.chance(60) || d.chance(5)}
}

func beneath(items []model.Item, dir string) []string {
	var list []string
	for _, it := range items {
		if strings.HasPrefix(it.Path, dir+"/") {
			list = append(list, it.Path)
		}
	}
	return list
}

// spelling writes a path in one of the ways that FS-5 and FS-6 know.
func (d *draw) spelling(p string) string {
	rel, inCwd := strings.CutPrefix(p, model.Cwd+"/")
	home, inHome := strings.CutPrefix(p, model.Home+"/")
	switch n := d.IntN(10); {
	case p == model.Cwd:
		return pick(d, []string{".", "./", "~/p", "../p/.", "./**"})
	case inCwd && n < 5:
		return rel
	case inCwd && n < 6:
		return "./" + strings.ReplaceAll(rel, "/", "//")
	case inCwd && n < 7 && !strings.ContainsAny(rel, "*?[]"):
		return rel + pick(d, []string{"/", "/.", "/**", "/./"})
	case inCwd && n < 8:
		return "nothing/../" + rel
	case inHome && n < 9:
		return "~/" + home
	}
	return p
}

// pattern draws a pattern that has to do with a path.
func (d *draw) pattern(p string) string {
	names := strings.Split(p[1:], "/")
	last := names[len(names)-1]
	i := d.IntN(len(last) + 1)
	wild := []string{"*", "**", "?", last[:i] + "*", "*" + last[i:], "[" + last[:min(1, len(last))] + "-z]" + last[1:], last[:len(last)-1] + "?",
		"**" + last[i:], "*.pem", ".*", "[a-fx]*"}
	names[len(names)-1] = pick(d, wild)
	if n := len(names); n > 3 && d.chance(40) {
		names[n-2] = pick(d, []string{"*", "**", "x*", "?"})
	}
	text := "/" + strings.Join(names, "/")
	if d.chance(10) {
		text += "/**"
	}
	if rel, ok := strings.CutPrefix(text, model.Cwd+"/"); ok && d.chance(80) {
		text = rel
		if d.chance(8) && !strings.HasSuffix(text, "/") {
			text += "/"
		}
	}
	if d.chance(30) {
		text = "**/" + path.Base(strings.TrimSuffix(text, "/"))
	}
	return text
}

// ops draws operations, each in the state that those before it have left.
func (d *draw) ops(sc scenario, most int) drawer {
	return func(w *model.World) (model.Op, bool) {
		most--
		return d.op(w, sc), most >= 0
	}
}

func (d *draw) op(w *model.World, sc scenario) model.Op {
	op := model.Op{Do: pick(d, model.Kinds()), At: d.chance(30)}
	switch op.Do {
	case "rename", "link", "noreplace", "exchange":
		op.A, op.B = d.existing(w, sc), d.path(w, sc)
		if op.Do != "exchange" && d.chance(50) {
			op.B = d.fresh(w)
		}
	case "symlink", "mkdir", "mkfifo", "mknod", "create", "tmpfile", "creat":
		if op.A = d.path(w, sc); d.chance(50) {
			op.A = d.fresh(w)
		}
	default:
		op.A = d.existing(w, sc)
	}
	switch op.Do {
	case "symlink":
		if op.B = d.path(w, sc); d.chance(30) {
			op.B = path.Base(op.B)
		}
	case "write", "append", "create", "creat", "tmpfile":
		op.Text = d.text()
	case "chmod":
		op.Mode = pick(d, []uint32{0o700, 0o755, 0o711, 0o775})
	}
	return op
}

// existing draws a path that is likely to lead to something.
func (d *draw) existing(w *model.World, sc scenario) string {
	if view := w.View(); d.chance(60) {
		return pick(d, view)
	}
	return d.path(w, sc)
}

// fresh draws a new name in a directory that can be seen.
func (d *draw) fresh(w *model.World) string {
	var dirs []string
	for _, loc := range w.View() {
		if w.At(loc).Kind == model.Dir {
			dirs = append(dirs, loc)
		}
	}
	return path.Join(pick(d, dirs), pick(d, slices.Concat(newNames, newNames, fileNames, dirNames)))
}

// near draws a location that a rule is about, or one just above or beneath.
func (d *draw) near(targets []string) string {
	if len(targets) == 0 {
		return model.Cwd
	}
	p := pick(d, targets)
	switch d.IntN(8) {
	case 0, 1:
		p = path.Dir(p)
	case 2:
		p = path.Dir(path.Dir(p))
	case 3:
		p = path.Join(p, pick(d, newNames))
	}
	if p == "/" {
		return model.Cwd
	}
	return p
}

// path draws a path: something that is there or was, or a new name beside it.
func (d *draw) path(w *model.World, sc scenario) string {
	all := w.Names()
	view := w.View()
	switch n := d.IntN(100); {
	case n < 20:
		return pick(d, all)
	case n < 40:
		return pick(d, view)
	case n < 60:
		return d.near(w.Targets())
	case n < 67:
		return pick(d, sc.Items).Path
	case n < 75:
		return path.Join(model.Cwd, pick(d, slices.Concat(newNames, dirNames)))
	}
	dir := pick(d, view)
	if d.chance(60) {
		for range 4 {
			if o := w.At(dir); o != nil && o.Kind != model.File {
				break
			}
			dir = path.Dir(dir)
		}
	}
	return path.Join(dir, pick(d, slices.Concat(newNames, newNames, fileNames, dirNames)))
}
