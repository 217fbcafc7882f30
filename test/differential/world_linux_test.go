package differential

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/srt-sandbox/srt/test/differential/internal/model"
	"github.com/srt-sandbox/srt/test/programs/stage"
)

// world is the scratch directory of a run: root is the world of the model, side holds what belongs to no case.
type world struct {
	root, side string
	who        stage.Account
	confined   bool // in mode confined (docs/modes.md)
}

func newWorld(who stage.Account, items []model.Item) (*world, error) {
	root, err := os.MkdirTemp("", "srt-diff-")
	if err != nil {
		return nil, err
	}
	w := &world{root: root, side: root + "-side", who: who}
	if err := os.Mkdir(w.side, 0o755); err != nil {
		return w, err
	}
	for _, dir := range []string{w.root, w.side} {
		if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, who.UID, who.GID)); err != nil {
			return w, err
		}
	}
	for _, it := range items {
		if err := w.plant(it); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w *world) plant(it model.Item) error {
	p := w.root + it.Path
	switch {
	case it.Same != "":
		return os.Link(w.root+it.Same, p)
	case it.Kind == model.Dir:
		return errors.Join(os.Mkdir(p, 0o755), os.Chmod(p, 0o755), os.Lchown(p, w.who.UID, w.who.GID))
	case it.Kind == model.Link:
		return errors.Join(os.Symlink(w.real(it.Target), p), os.Lchown(p, w.who.UID, w.who.GID))
	}
	return errors.Join(os.WriteFile(p, []byte(it.Text), 0o644), os.Chmod(p, 0o644), os.Lchown(p, w.who.UID, w.who.GID))
}

// real is the host's path of one in the world; relative texts stay as they are.
func (w *world) real(p string) string {
	if !filepath.IsAbs(p) {
		return p
	}
	return filepath.Clean(w.root + p)
}

// modelled is the opposite of real.
func (w *world) modelled(p string) string {
	if rest, ok := strings.CutPrefix(p, w.root); ok && (rest == "" || rest[0] == '/') {
		return "/" + strings.TrimPrefix(rest, "/")
	}
	return p
}

func (w *world) remove() error {
	_ = filepath.WalkDir(w.root, func(p string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return errors.Join(os.RemoveAll(w.root), os.RemoveAll(w.side))
}

// host lists the tree as it is, in words: what the model's items become with words.
func (w *world) host() (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(w.root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == w.root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		it := model.Item{Path: w.modelled(p), Mode: uint32(info.Mode().Perm())}
		switch {
		case info.IsDir():
			it.Kind = model.Dir
		case info.Mode().IsRegular():
			it.Kind = model.File
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			it.Text = string(text)
		case info.Mode()&fs.ModeSymlink != 0:
			it.Kind = model.Link
			if it.Target, err = os.Readlink(p); err != nil {
				return err
			}
			it.Target = w.modelled(it.Target)
		case info.Mode()&fs.ModeNamedPipe != 0:
			it.Kind = model.Fifo
		default:
			it.Kind = '?'
		}
		found[it.Path] = words(it)
		return nil
	})
	return found, err
}

// words says what an item is, without its path.
func words(it model.Item) string {
	if it.Kind == model.Link {
		return "link to " + it.Target
	}
	return fmt.Sprintf("%c %04o %q", it.Kind, it.Mode, it.Text)
}

// settings is the settings file of a policy.
func (w *world) settings(pol model.Policy) []byte {
	list := func(entries []model.Entry) []any {
		out := []any{}
		for _, e := range entries {
			text := w.text(e.Text)
			if e.Marked {
				out = append(out, map[string]any{"path": text, "literal": true})
			} else {
				out = append(out, text)
			}
		}
		return out
	}
	top := map[string]any{
		"network": map[string]any{"allowedDomains": []any{}, "deniedDomains": []any{}},
		"filesystem": map[string]any{"denyRead": list(pol.DenyRead), "allowRead": list(pol.AllowRead),
			"allowWrite": list(pol.AllowWrite), "denyWrite": list(pol.DenyWrite), "allowGitConfig": pol.AllowGitConfig},
	}
	if w.confined {
		top["enableWeakerNestedSandbox"] = true
	}
	if pol.SearchDepth > 0 {
		top["mandatoryDenySearchDepth"] = pol.SearchDepth
	}
	if len(pol.Credential) > 0 {
		files := []any{}
		for _, e := range pol.Credential {
			files = append(files, map[string]any{"path": w.text(e.Text), "mode": "deny"})
		}
		top["credentials"] = map[string]any{"files": files}
	}
	data, err := json.MarshalIndent(top, "", " ")
	if err != nil {
		panic(err)
	}
	return data
}

// text is an entry with the world's place before an absolute text, and otherwise as written.
func (w *world) text(text string) string {
	if strings.HasPrefix(text, "/") {
		return w.root + text
	}
	return text
}
