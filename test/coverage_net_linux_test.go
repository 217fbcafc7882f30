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
	lastNetworkRule = 94 // of the network chapter
	lastNetworkCase = 36 // of those at its end
)

// noNetworkRule are the numbers that the chapter leaves out, and the rules that bind other systems or a part of srt that does not exist
// yet.
var noNetworkRule = map[int]string{14: "left out", 17: "left out", 45: "left out", 46: "left out", 47: "left out", 48: "left out",
	49: "left out", 54: "left out", 59: "left out", 65: "left out", 66: "left out", 67: "left out", 68: "left out", 69: "left out",
	76: "left out", 77: "left out", 78: "left out", 79: "left out", 86: "left out", 87: "left out", 88: "left out", 89: "left out",
	5: "macOS and Windows", 26: "TLS termination", 94: "Windows"}

// testTexts calls f with the text of every test of the repository.
func testTexts(t *testing.T, f func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar"), strings.HasPrefix(d.Name(), "coverage_"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			f(path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNET_EveryRuleIsNamedByATest: each rule that binds Linux is named by a test somewhere in the repository.
func TestNET_EveryRuleIsNamedByATest(t *testing.T) {
	rule := regexp.MustCompile(`(?:NET|Net)[-_]?(\d+(?:_\d+)*)`)
	named := map[int]bool{}
	testTexts(t, func(_ string, text []byte) {
		for _, m := range rule.FindAllSubmatch(text, -1) {
			for number := range strings.SplitSeq(string(m[1]), "_") {
				if n, err := strconv.Atoi(number); err == nil {
					named[n] = true
				}
			}
		}
	})
	for n := 1; n <= lastNetworkRule; n++ {
		if _, exempt := noNetworkRule[n]; !exempt && !named[n] {
			t.Errorf("no test names rule %d of the network chapter", n)
		}
	}
}

// TestNET_EveryCaseIsATest: each case of the chapter is a test, or an entry of a table that says so.
func TestNET_EveryCaseIsATest(t *testing.T) {
	declared := regexp.MustCompile(`(?m)(?:^func Test\w*?|")(?:NET_|Net_)?[cC]ase_?(\d+(?:_\d+)*)`)
	have := map[int]bool{}
	testTexts(t, func(path string, text []byte) {
		if !strings.HasPrefix(path, filepath.Join("..", "proxy")) && !strings.HasPrefix(filepath.Base(path), "network") &&
			!strings.HasPrefix(path, filepath.Join("..", "runtime")) && !strings.Contains(string(text), "TestNet_") {
			return // cases of another chapter
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			for number := range strings.SplitSeq(string(m[1]), "_") {
				if n, err := strconv.Atoi(number); err == nil {
					have[n] = true
				}
			}
		}
	})
	for n := 1; n <= lastNetworkCase; n++ {
		if !have[n] {
			t.Errorf("case %d is no test", n)
		}
	}
}
