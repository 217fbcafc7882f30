package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Files of the tree that a run writes, beneath the tree's top, where it is started.
const (
	resultsFile  = "test/vm/results.json"
	documentFile = "docs/kernels.md"
)

func main() {
	cache := flag.String("cache", "", "the `directory` for what is fetched and made; default: srt-vm in the user's cache directory")
	only := flag.String("kernels", "", "the `suites` of Debian's whose kernels to boot, with spaces between; default: all")
	folders := flag.String("suites", strings.Join(suites, " "), "the `folders` whose test programs to run, with spaces between; empty: none")
	draw := flag.Bool("document", false, "boot nothing: only write the document again from the results")
	limit := flag.Duration("limit", 90*time.Minute, "how long one machine may run")
	flag.Parse()
	err := writeDocument()
	if !*draw {
		err = test(*cache, strings.Fields(*only), strings.Fields(*folders), *limit)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
		os.Exit(1)
	}
}

// say tells the person at the terminal what is being done.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// test boots the kernels, one after another, and keeps what each gives as soon as it has ended.
func test(cache string, only, folders []string, limit time.Duration) error {
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
	b, err := newBench(cache, folders, limit)
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
