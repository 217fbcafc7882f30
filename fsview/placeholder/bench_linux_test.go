package placeholder

import (
	"path/filepath"
	"testing"
)

// BenchmarkSweepNothing is what every start pays.
func BenchmarkSweepNothing(b *testing.B) {
	state := filepath.Join(b.TempDir(), "srt")
	for b.Loop() {
		if err := Sweep(state); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSession is what a start and an end in an empty directory pay for the mandatory names (FS-35); most of it is
// the disk's time for two syncs.
func BenchmarkSession(b *testing.B) {
	root, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	var names []Name
	for _, n := range []string{".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile",
		".ripgreprc", ".mcp.json"} {
		names = append(names, Name{Path: filepath.Join(root, n)})
	}
	for _, n := range []string{".vscode", ".idea", ".claude/commands", ".claude/agents"} {
		names = append(names, Name{Path: filepath.Join(root, n), Dir: true})
	}
	for b.Loop() {
		s, err := Hold(filepath.Join(root, "state/srt"), names)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Release(); err != nil {
			b.Fatal(err)
		}
	}
}
