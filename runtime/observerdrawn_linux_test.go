package runtime

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// drawnPlaces are paths in the tree of tracedTree, spelled in ways that lead there.
var drawnPlaces = []string{"outside/f", "outside/new", "outside", "outside/./none/../f", "work/free", "work/new", "work/d", "work/d/e", "work/sub", "work/sub/deep",
	"work/locked", "work/locked/f", "work/locked/x", "work/sub/deep/fixed", "work/sub/deep/n", "work/later", "work/later/x", "work/to-outside/f",
	"work/to-outside/new", "work/to-outside", "work/sub/../locked/f", "work/../outside/f", "outside/f/x", "work/none/x"}

// drawnCalls are actions with one path, and those with two.
var (
	drawnCalls = []string{"read", "write", "trunc", "create", "openat2", "mkdir", "rmdir", "unlink", "symlink", "utimes", "setxattr",
		"truncate", "readlink"}
	drawnPairs = []string{"rename", "link"}
)

// TestObserved_AgreesWithTheKernel draws calls and compares what the observer says before each with what the kernel says of it
// afterwards: a refusal is never missed, and what succeeds or finds nothing is never one.
func TestObserved_AgreesWithTheKernel_VIO10(t *testing.T) {
	// With a plan that hides nothing. EXDEV may be either: the kernel says it before it looks whether there is something to move.
	refused := []string{"EROFS", "EBUSY", "EACCES"}
	innocent := []string{"ok <nil>", "ENOENT", "EEXIST", "ENAMETOOLONG"}
	told := 0
	for seed := range uint64(6) {
		draw := rand.New(rand.NewPCG(seed, 5))
		place := func() string { return drawnPlaces[draw.IntN(len(drawnPlaces))] }
		dir, cfg := tracedTree(t)
		cfg.Filesystem.DenyRead = nil
		s, got := observedSession(t, MonitorAll, cfg)
		var lines []string
		for range 400 {
			call := drawnCalls[draw.IntN(len(drawnCalls))] + " " + place()
			if draw.IntN(4) == 0 {
				call = drawnPairs[draw.IntN(len(drawnPairs))] + " " + place() + " " + place()
			}
			lines = append(lines, call, "mkdir outside/mark")
		}
		answers := tracedCalls(t, s, dir, "", lines...)
		events := eventsByMark(got, filepath.Join(dir, "outside/mark"))
		if len(events) != len(lines)/2 || len(answers) != len(lines) {
			t.Fatalf("seed %d: %d marks and %d answers for %d calls", seed, len(events), len(answers), len(lines)/2)
		}
		for i, list := range events {
			call, answer := lines[2*i], answers[2*i]
			told += len(list)
			if slices.Contains(refused, answer) && len(list) == 0 || slices.Contains(innocent, answer) && len(list) != 0 {
				t.Errorf("seed %d, call %d: %s gave %s and the events %q", seed, i, call, answer, list)
			}
		}
	}
	if told < 300 {
		t.Errorf("only %d refusals were drawn", told)
	}
}

// eventsByMark parts events at those of a path.
func eventsByMark(got *eventRecorder, mark string) (parts [][]string) {
	var part []string
	for _, e := range got.take() {
		if e.Target == mark {
			parts, part = append(parts, part), nil
			continue
		}
		part = append(part, strings.TrimPrefix(fmt.Sprint(e.Line(), " ", e.Rule), "deny "))
	}
	return parts
}
