package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/srt-sandbox/srt/test/vm/internal/record"
)

// Files of the tree that a run writes, beneath the tree's top, where it is started.
const (
	resultsFile  = "test/vm/results.json"
	documentFile = "docs/kernels.md"
)

func main() {
	cache := flag.String("cache", "", "the `directory` for what is fetched and made; default: srt-vm in the user's cache directory")
	only := flag.String("kernels", "", "the `suites` of Debian's whose kernels to boot, with spaces between; default: all")
	folders := flag.String("suites", "all", "the `folders` whose test programs to run, with spaces between; empty: none")
	whole := flag.Bool("whole", false, "run every test of these as every account: hours")
	draw := flag.Bool("document", false, "boot nothing: only write the document again from the results")
	limit := flag.Duration("limit", 90*time.Minute, "how long one machine may run; what it has told by then counts")
	flag.Parse()
	err := writeDocument()
	if !*draw {
		err = test(*cache, strings.Fields(*only), choose(strings.Fields(*folders), *whole), *limit)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
		os.Exit(1)
	}
}

// choose gives the suites of these folders.
func choose(folders []string, whole bool) []record.Suite {
	var chosen []record.Suite
	for _, s := range suites {
		if !slices.Equal(folders, []string{"all"}) && !slices.Contains(folders, s.Folder) {
			continue
		}
		if whole {
			s = record.Suite{Folder: s.Folder, Accounts: accountNames}
		}
		chosen = append(chosen, s)
	}
	return chosen
}

// say tells the person at the terminal what is being done.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// test boots the kernels, one after another, and keeps what each gives as soon as it has ended.
func test(cache string, only []string, suites []record.Suite, limit time.Duration) error {
	for _, suite := range only {
		if !slices.ContainsFunc(kernels, func(k kernel) bool { return k.Suite == suite }) {
			return fmt.Errorf("there is no kernel %q here; there are %v", suite, kernels)
		}
	}
	if cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		cache = filepath.Join(dir, "srt-vm")
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	b, err := newBench(cache, suites, limit)
	if err != nil {
		return err
	}
	failed := 0
	for _, k := range kernels {
		if len(only) > 0 && !slices.Contains(only, k.Suite) {
			continue
		}
		r, err := b.measure(k)
		if err != nil {
			return fmt.Errorf("%s: %w", k.Suite, err)
		}
		failed += len(r.unexplained())
		if err := keep(r); err != nil {
			return err
		}
		if err := writeDocument(); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d tests have failed without a reason that failures.go gives", failed)
	}
	return nil
}
