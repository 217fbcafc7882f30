package test

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// libraryRules are the rules of the library chapter, and those of the command line's control channel, that need a test here:
// ranges of numbers, both ends included. The numbers between them the chapters leave out.
var libraryRules = map[string][][2]int{
	"LIB": {{1, 18}, {20, 23}, {25, 32}, {35, 36}, {50, 52}},
	"VIO": {{1, 7}, {10, 17}, {20, 21}, {25, 26}, {30, 33}},
	"CLI": {{20, 21}, {23, 30}, {32, 32}},
}

// noLibraryRule are the rules among them that bind other systems alone.
var noLibraryRule = map[string]string{"LIB-15": "Windows", "VIO-17": "macOS and Windows"}

const lastLibraryCase = 26 // of those at the chapter's end

// ruleName finds a rule in a text: LIB-25, VIO10, TestLib_3_4.
var ruleName = regexp.MustCompile(`(?i:(LIB|VIO|CLI))[-_]?(\d+(?:_\d+)*)`)

// TestLIB_VIO_CLI_EveryRuleIsNamedByATest: each rule that binds Linux is named by a test somewhere in the repository.
func TestLIB_VIO_CLI_EveryRuleIsNamedByATest(t *testing.T) {
	named := map[string]bool{}
	testTexts(t, func(_ string, text []byte) {
		for _, m := range ruleName.FindAllSubmatch(text, -1) {
			for number := range strings.SplitSeq(string(m[2]), "_") {
				named[strings.ToUpper(string(m[1]))+"-"+strings.TrimLeft(number, "0")] = true
			}
		}
	})
	for chapter, ranges := range libraryRules {
		for _, r := range ranges {
			for n := r[0]; n <= r[1]; n++ {
				rule := chapter + "-" + strconv.Itoa(n)
				if _, exempt := noLibraryRule[rule]; !exempt && !named[rule] {
					t.Errorf("no test names %s", rule)
				}
			}
		}
	}
}

// TestLIB_EveryCaseIsATest: each case of the library chapter is a test of package runtime or of the packages that hold
// violations and configurations, or an entry of a table that says so. Other chapters have cases of the same numbers: what
// names a rule of theirs does not count.
func TestLIB_EveryCaseIsATest(t *testing.T) {
	declared := regexp.MustCompile(`(?m)(?:^func Test(\w*?)|"([^"\n]{0,30}?))((?:_?[cC]ase[_ ]?\d+)+)`)
	number := regexp.MustCompile(`\d+`)
	foreign := regexp.MustCompile(`NET|Net_|CFG|FS|^network`)
	have := map[int]bool{}
	testTexts(t, func(path string, text []byte) {
		dir := filepath.Dir(strings.TrimPrefix(filepath.ToSlash(path), "../"))
		if dir != "runtime" && dir != "runtime/violation" && filepath.Base(path) != "override_test.go" && filepath.Base(path) != "diff_test.go" {
			return
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			if foreign.Match(m[1]) || foreign.Match(m[2]) {
				continue
			}
			for _, n := range number.FindAllString(string(m[3]), -1) {
				if n, err := strconv.Atoi(n); err == nil {
					have[n] = true
				}
			}
		}
	})
	for n := 1; n <= lastLibraryCase; n++ {
		if !have[n] {
			t.Errorf("case %d is no test", n)
		}
	}
}
