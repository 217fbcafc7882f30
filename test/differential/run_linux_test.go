package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/srt-sandbox/srt/test/differential/internal/model"
	"github.com/srt-sandbox/srt/test/programs/stage"
)

// patience bounds a run, so that a fault does not hang the suite. It says nothing about speed.
const patience = 60 * time.Second

// scenario is one case. Its operations are done in order.
type scenario struct {
	Root   bool // the caller is root
	Items  []model.Item
	Policy model.Policy
	Ops    []model.Op
	// Confined has it done in mode confined (docs/modes.md).
	Confined bool
}

// drawer gives the next operation in a state of the world, until it has no more.
type drawer func(w *model.World) (model.Op, bool)

// replay gives the operations of a list.
func replay(ops []model.Op) drawer {
	return func(*model.World) (model.Op, bool) {
		if len(ops) == 0 {
			return model.Op{}, false
		}
		op := ops[0]
		ops = ops[1:]
		return op, true
	}
}

// outcome is how a run went: the operations done, and the first difference, empty when there is none.
type outcome struct {
	ops        []model.Op
	difference string
}

// run does a case as an account. An error means that it could not be done, which is a fault of the test.
func run(who stage.Account, sc scenario, next drawer) (out outcome, err error) {
	w, err := newWorld(who, sc.Items)
	if w != nil {
		defer func() {
			if err2 := w.remove(); err == nil {
				err = err2
			}
		}()
	}
	if err != nil {
		return out, err
	}
	w.confined = sc.Confined
	m, err := model.Start(sc.Items, sc.Policy, who.Root())
	if err != nil {
		return out, err
	}
	s, err := w.start(sc.Policy)
	if err != nil {
		return out, err
	}
	defer s.stop()
	out.difference = s.survey(m)
	for out.difference == "" {
		op, ok := next(m)
		if !ok {
			break
		}
		done, difference := s.step(m, op)
		if done {
			out.ops = append(out.ops, op)
		}
		out.difference = difference
	}
	if out.difference == "" {
		out.difference = s.survey(m)
	}
	s.stop()
	if out.difference != "" {
		return out, nil
	}
	if out.difference, err = w.compare(m); err != nil {
		return out, err
	}
	return out, nil
}

// sandbox is a probe at work in a sandbox.
type sandbox struct {
	w       *world
	cmd     *exec.Cmd
	cancel  context.CancelFunc
	stdin   io.WriteCloser
	in      *json.Encoder
	out     *json.Decoder
	stderr  bytes.Buffer
	stopped bool
}

func (w *world) start(pol model.Policy) (*sandbox, error) {
	file := w.side + "/settings.json"
	if err := os.WriteFile(file, w.settings(pol), 0o644); err != nil {
		return nil, err
	}
	tmp := w.side + "/tmp"
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chown(tmp, w.who.UID, w.who.GID); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s := &sandbox{w: w, cancel: cancel}
	s.cmd = exec.CommandContext(ctx, srtPath, "-s", file, "exec", "--", probePath)
	s.cmd.Dir = w.real(model.Cwd)
	s.cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + w.real(model.Home), "CLAUDE_CODE_TMPDIR=" + tmp}
	if w.confined {
		s.cmd.Env = append(s.cmd.Env, "SRT_WITHOUT=userns")
	}
	s.cmd.Stderr, s.cmd.WaitDelay = &s.stderr, patience
	if os.Getuid() == 0 {
		s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(w.who.UID), Gid: uint32(w.who.GID)}}
	}
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.stdin, s.in, s.out = stdin, json.NewEncoder(stdin), json.NewDecoder(stdout)
	return s, s.cmd.Start()
}

// stop lets the probe end.
func (s *sandbox) stop() {
	if s.stopped {
		return
	}
	s.stopped = true
	_ = s.stdin.Close()
	_ = s.cmd.Wait()
	s.cancel()
}

// ask has one operation done. ended says that there is nobody to do it.
func (s *sandbox) ask(op model.Op) (result, value string, ended bool) {
	a, b := s.w.real(op.A), op.B
	if b != "" {
		b = s.w.real(b)
	}
	request := map[string]any{"Do": op.Do, "A": []byte(a), "B": []byte(b), "Text": op.Text, "Mode": op.Mode, "At": op.At}
	var got struct {
		Outcome string
		Value   []byte
	}
	err := s.in.Encode(request)
	if err == nil {
		err = s.out.Decode(&got)
	}
	if err != nil {
		s.stop()
		return "", "", true
	}
	value = string(got.Value)
	if op.Do == "readlink" {
		value = s.w.modelled(value)
	}
	return got.Outcome, value, false
}

// step does one operation and compares. done is false for one that the model leaves open.
func (s *sandbox) step(m *model.World, op model.Op) (done bool, difference string) {
	done, got, difference := s.try(m, op)
	switch {
	case !done:
	case got == "ok":
		counts.ok.Add(1)
	default:
		counts.refused.Add(1)
	}
	return done, difference
}

// try is step, and also gives the outcome.
func (s *sandbox) try(m *model.World, op model.Op) (done bool, got, difference string) {
	want := m.Judge(op)
	if want.Open {
		return false, "", ""
	}
	got, value, ended := s.ask(op)
	switch {
	case ended:
		return true, got, fmt.Sprintf("%s: the sandbox ended (%v)\n%s", say(op), s.cmd.ProcessState, s.stderr.String())
	case !want.Allows(got):
		return true, got, fmt.Sprintf("%s: got %s, want %s", say(op), got, wanted(want))
	case got == "ok" && value != want.Value:
		return true, got, fmt.Sprintf("%s: got %q, want %q", say(op), value, want.Value)
	}
	if got == "ok" {
		m.Done(op)
	}
	return true, got, ""
}

func wanted(w model.Want) string {
	list := w.Errs
	if w.OK {
		list = append([]string{"ok"}, list...)
	}
	return strings.Join(list, "|")
}

// say is an operation in words.
func say(op model.Op) string {
	text := fmt.Sprintf("%s %q", op.Do, op.A)
	if op.B != "" {
		text += fmt.Sprintf(" %q", op.B)
	}
	if op.Mode != 0 {
		text += fmt.Sprintf(" %04o", op.Mode)
	}
	if op.At {
		text += " (at)"
	}
	return text
}

// survey looks at everything that can be seen, and at what is hidden.
func (s *sandbox) survey(m *model.World) string {
	look := func(do, loc string) string {
		_, _, difference := s.try(m, model.Op{Do: do, A: loc})
		return difference
	}
	if d := look("list", "/"); d != "" {
		return d
	}
	var found []string
	visible := m.View()
	for _, loc := range visible {
		found = append(found, look("lstat", loc))
		switch m.At(loc).Kind {
		case model.Dir:
			found = append(found, look("list", loc))
		case model.File:
			found = append(found, look("read", loc))
		case model.Link:
			found = append(found, look("readlink", loc), look("stat", loc))
		}
	}
	for _, loc := range m.Names() {
		if !slices.Contains(visible, loc) {
			found = append(found, look("lstat", loc), look("read", loc))
		}
	}
	for _, d := range found {
		if d != "" {
			return d
		}
	}
	return ""
}

// compare compares the host's tree to the model's (FS-52).
func (w *world) compare(m *model.World) (string, error) {
	got, err := w.host()
	if err != nil {
		return "", err
	}
	want := map[string]string{}
	for _, it := range m.Host() {
		want[it.Path] = words(it)
	}
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, p := range slices.Sorted(maps.Keys(all)) {
		if got[p] != want[p] {
			return fmt.Sprintf("on the host %q is %s; want %s", p, orNothing(got[p]), orNothing(want[p])), nil
		}
	}
	return w.compareSide()
}

func orNothing(s string) string {
	if s == "" {
		return "absent"
	}
	return s
}

// compareSide wants nothing beside the tree but what the test put there.
func (w *world) compareSide() (string, error) {
	found, err := filepath.Glob(w.side + "/*")
	if err != nil {
		return "", err
	}
	inner, err := os.ReadDir(w.side + "/tmp")
	if err != nil {
		return "", err
	}
	if len(found) != 2 || len(inner) > 0 {
		return fmt.Sprintf("beside the tree there are %q and %v", found, inner), nil
	}
	return "", nil
}
