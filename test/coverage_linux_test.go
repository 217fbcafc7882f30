package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	lastRule = 65 // of the filesystem chapter, but for its notes on macOS and Windows
	lastCase = 36 // of those at its end
)

// elsewhere are the rules that bind other systems alone.
var elsewhere = map[int]string{34: "macOS and Windows", 43: "macOS", 62: "Windows"}

// TestFS_EveryRuleIsNamedByATest: each rule that binds Linux is named by a test somewhere in the repository.
func TestFS_EveryRuleIsNamedByATest(t *testing.T) {
	rule := regexp.MustCompile(`FS[-_]?(\d+(?:_\d+)*)`)
	named := map[int]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "vendor"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range rule.FindAllSubmatch(text, -1) {
			for number := range strings.SplitSeq(string(m[1]), "_") {
				if n, err := strconv.Atoi(number); err == nil {
					named[n] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= lastRule; n++ {
		if _, exempt := elsewhere[n]; !exempt && !named[n] {
			t.Errorf("no test names rule %d of the filesystem chapter", n)
		}
	}
}

// TestFS_EveryCaseIsATest: each case of the chapter is a test of this package.
func TestFS_EveryCaseIsATest(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func TestFS_case(\d\d)_FS\d`)
	have := map[int]bool{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			n, _ := strconv.Atoi(string(m[1])) // two digits
			have[n] = true
		}
	}
	for n := 1; n <= lastCase; n++ {
		if !have[n] {
			t.Errorf("case %d is no test", n)
		}
	}
}
