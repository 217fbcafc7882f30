package differential

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/srt-sandbox/srt/test/differential/internal/model"
	"github.com/srt-sandbox/srt/test/programs/stage"
)

const (
	defaultSeed  = 1
	defaultCount = 300 // cases, shared by the accounts
	opsOfACase   = 40
	shrinkRuns   = 400
	together     = 4 // cases at once
	enough       = 5 // differences, after which no further case is run
)

// number reads an environment variable.
func number(t *testing.T, name string, fallback uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestDifferential covers FS-5 to FS-10, FS-12 to FS-33 and FS-35 to FS-42, as far as one command can tell.
func TestDifferential(t *testing.T) {
	seed, count := number(t, "SRT_DIFF_SEED", defaultSeed), number(t, "SRT_DIFF_COUNT", defaultCount)
	var mu sync.Mutex
	var next uint64
	differences := 0
	take := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next <= count && differences < enough
	}
	var wg sync.WaitGroup
	for range together {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				if text := differs(seed, i); text != "" {
					mu.Lock()
					differences++
					mu.Unlock()
					t.Errorf("seed %d, case %d:\n%s", seed, i, text)
				}
			}
		})
	}
	wg.Wait()
	if done, refused := counts.ok.Load(), counts.refused.Load(); count >= 50 && (done < 5*int64(count) || refused < 5*int64(count)) {
		t.Errorf("the cases say little: of %d cases' operations, %d were done and %d refused", count, done, refused)
	}
}

// counts are the operations that went one way and the other, surveys aside.
var counts struct{ ok, refused atomic.Int64 }

// differs runs a case, and reports a difference with the smallest case that has one.
func differs(seed, index uint64) string {
	who := accounts[index%uint64(len(accounts))]
	d := newDraw(seed, index)
	sc := d.scenario(who.Root())
	out, err := run(who, sc, d.ops(sc, opsOfACase))
	if err != nil {
		return err.Error()
	}
	if out.difference == "" {
		return ""
	}
	sc.Ops = out.ops
	sc, difference := shrink(who, sc, out.difference, shrinkRuns)
	return report(who, sc, difference)
}

func report(who stage.Account, sc scenario, difference string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "as %s: %s\nin a tree of\n", who.Name, difference)
	for _, it := range sc.Items {
		fmt.Fprintf(&b, "\t%c %q", it.Kind, it.Path)
		if it.Target != "" {
			fmt.Fprintf(&b, " -> %q", it.Target)
		}
		if it.Same != "" {
			fmt.Fprintf(&b, " = %q", it.Same)
		}
		b.WriteString("\n")
	}
	w := &world{root: ""}
	fmt.Fprintf(&b, "HOME=%s, in %s, with paths beneath a scratch directory, under\n%s\nafter\n", model.Home, model.Cwd, w.settings(sc.Policy))
	for _, op := range sc.Ops {
		fmt.Fprintf(&b, "\t%s\n", say(op))
	}
	return b.String()
}
