package differential

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/test/differential/internal/model"
)

// whyCases is how many cases TestWhy goes through.
const whyCases = 60

// TestWhy: what "srt explain why" says of reading, writing, creating and removing in drawn trees under drawn policies is what
// then happens in a sandbox, as every account.
func TestWhy(t *testing.T) {
	seed, count := number(t, "SRT_DIFF_SEED", defaultSeed), number(t, "SRT_WHY_COUNT", whyCases)
	var said whySaid
	for i := range count {
		who := accounts[i%uint64(len(accounts))]
		d := newDraw(seed+1000, i)
		sc := d.scenario(who.Root())
		w, err := newWorld(who, sc.Items)
		if err == nil {
			var faults []string
			faults, err = w.why(d, sc, &said)
			for _, fault := range faults[:min(len(faults), 5)] {
				t.Errorf("seed %d, case %d: %s", seed, i, report(who, sc, fault))
			}
		}
		if w != nil {
			err = errors.Join(err, w.remove())
		}
		if err != nil {
			t.Fatalf("seed %d, case %d: %v", seed, i, err)
		}
		if t.Failed() {
			return
		}
	}
	if allowed, denied := said.allowed.Load(), said.denied.Load(); count >= 20 && (allowed < int64(count) || denied < int64(count)) {
		t.Errorf("the cases say little: %d allowed and %d denied", allowed, denied)
	}
}

// whySaid counts answers.
type whySaid struct{ allowed, denied atomic.Int64 }

// answer is one of srt's answers.
type answer struct {
	Kind, Access, Path, Rule, Entry, Reason string
	Allowed                                 bool
}

// inMemory tells that the command may do as it likes there, since nothing of the host is there.
func (a answer) inMemory() bool { return strings.Contains(a.Reason, "in memory") }

// why asks about everything, then tries it, and says where the two differ.
func (w *world) why(d *draw, sc scenario, said *whySaid) (faults []string, err error) {
	m, err := model.Start(sc.Items, sc.Policy, w.who.Root())
	if err != nil {
		return nil, err
	}
	there := map[string]model.Item{}
	for _, it := range sc.Items {
		for it.Same != "" { // another name of a file
			it.Text, it.Same = there[it.Same].Text, there[it.Same].Same
		}
		there[it.Path] = it
	}
	paths := w.asked(d, sc, m, there)
	s, err := w.start(sc.Policy)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	answers, err := w.explain(paths)
	if err != nil {
		return nil, err
	}
	trial := trial{s: s, there: there}
	// Reading changes nothing; what is made is removed at once; what is removed goes last, the deepest first.
	for _, kind := range []string{"read", "write", "remove"} {
		order := slices.Clone(paths)
		if kind == "remove" {
			slices.Reverse(order)
		}
		for _, p := range order {
			a := answers[kind+" "+p]
			if a.Allowed {
				said.allowed.Add(1)
			} else {
				said.denied.Add(1)
			}
			if fault := trial.try(p, a); fault != "" {
				faults = append(faults, fmt.Sprintf("%s %q: %+v, but %s", kind, p, a, fault))
			}
		}
	}
	return faults, nil
}

// asked are the paths that are asked about, in order: all that exist but links, what the rules are about, and new names.
func (w *world) asked(d *draw, sc scenario, m *model.World, there map[string]model.Item) []string {
	var list []string
	for _, it := range sc.Items {
		if it.Kind == model.Link {
			continue
		}
		list = append(list, it.Path)
		if it.Kind == model.Dir {
			list = append(list, it.Path+"/"+pick(d, newNames), it.Path+"/"+pick(d, newNames))
		}
	}
	list = append(list, m.Targets()...)
	list = slices.DeleteFunc(list, func(p string) bool {
		_, exists := there[p]
		return p == "/" || strings.IndexByte(p, 0) >= 0 || w.throughLink(p) || !exists && w.exists(p)
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// throughLink tells whether a path has a link in it: operations differ in whether they follow the last one.
func (w *world) throughLink(p string) bool {
	for ; p != "/"; p = path.Dir(p) {
		if info, err := os.Lstat(w.real(p)); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

func (w *world) exists(p string) bool {
	_, err := os.Lstat(w.real(p))
	return err == nil
}

// explain has srt answer, as the account and from where the sandbox starts.
func (w *world) explain(paths []string) (map[string]answer, error) {
	args := []string{"explain", "why", "--json", "-s", w.side + "/settings.json"}
	for _, p := range paths {
		args = append(args, "--read", w.real(p), "--write", w.real(p), "--remove", w.real(p))
	}
	cmd := exec.Command(srtPath, args...)
	cmd.Dir = w.real(model.Cwd)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + w.real(model.Home), "CLAUDE_CODE_TMPDIR=" + w.side + "/tmp"}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(w.who.UID), Gid: uint32(w.who.GID)}}
	}
	text, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("srt explain why: %w\n%s", err, text)
	}
	var list []answer
	if err := json.Unmarshal(text, &list); err != nil || len(list) != 3*len(paths) {
		return nil, fmt.Errorf("%d answers to %d questions: %w", len(list), 3*len(paths), err)
	}
	answers := map[string]answer{}
	for i, p := range paths {
		for k := range 3 {
			answers[list[3*i+k].Kind+" "+p] = list[3*i+k]
		}
	}
	return answers, nil
}

// trial tries what was asked about.
type trial struct {
	s     *sandbox
	there map[string]model.Item
}

// try says how what happens differs from an answer, or "".
func (t *trial) try(p string, a answer) string {
	it, exists := t.there[p]
	var op model.Op
	switch {
	case a.Access == "read" && it.Kind == model.Dir:
		op = model.Op{Do: "list", A: p}
	case a.Access == "read":
		op = model.Op{Do: "read", A: p}
	case a.Access == "write" && it.Kind == model.Dir:
		op = model.Op{Do: "chmod", A: p, Mode: 0o755}
	case a.Access == "write":
		op = model.Op{Do: "append", A: p, Text: "more"}
	case a.Access == "create":
		op = model.Op{Do: "mkdir", A: p, Mode: 0o755}
	case it.Kind == model.Dir:
		op = model.Op{Do: "rmdir", A: p}
	default:
		op = model.Op{Do: "unlink", A: p}
	}
	got, value, ended := t.s.ask(op)
	if ended {
		return "the sandbox ended: " + t.s.stderr.String()
	}
	if a.Access == "create" && got == "ok" {
		if _, _, ended := t.s.ask(model.Op{Do: "rmdir", A: p}); ended {
			return "the sandbox ended"
		}
	}
	if !a.Allowed {
		return deniedFault(a, it, op, got, value)
	}
	parent, held := t.there[path.Dir(p)]
	switch {
	case exists && a.Access == "read" && it.Kind == model.File && (got != "ok" || value != it.Text),
		exists && (a.Access == "read" || a.Access == "write") && got != "ok",
		a.Access == "create" && held && parent.Kind == model.Dir && got != "ok",
		exists && a.Access == "remove" && got != "ok" && got != "ENOTEMPTY":
		return fmt.Sprintf("%s gave %s %q", op.Do, got, value)
	}
	return ""
}

// deniedFault says how a denied operation went on all the same.
func deniedFault(a answer, it model.Item, op model.Op, got, value string) string {
	switch {
	case a.Rule == "" || a.Reason == "":
		return "it does not say why"
	case a.inMemory(), op.Do == "list": // an empty directory in its place, or the way to what shows again
		return ""
	case op.Do == "read" && got == "ok" && value != it.Text: // root opens a hidden file and finds it empty (FS-31)
		return ""
	case got == "ok", got == "ENOTEMPTY":
		return fmt.Sprintf("%s gave %s %q", op.Do, got, value)
	}
	return ""
}
