package test

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tlsRules are the rules of the chapters about TLS, requests and credentials (TLS, REQ, CRED), and of the one about srt proxy (PRX):
// ranges of numbers, both ends included. The numbers between them the chapters leave out.
var tlsRules = map[string][][2]int{
	"TLS": {{1, 46}}, "REQ": {{1, 21}}, "CRED": {{1, 37}},
	"PRX": {{1, 8}, {10, 14}, {20, 26}, {30, 33}, {35, 37}, {40, 58}, {60, 60}, {65, 70}},
}

// noTLSRule are the rules among them that bind other systems alone.
var noTLSRule = map[string]string{
	"TLS-10": "the machine's own authority: Windows", "TLS-15": "paths and clients of Windows and macOS",
	"TLS-28": "certificate revocation lists: Windows", "CRED-8": "masked files on macOS and Windows",
}

// tests are the test functions of the repository by name: the text of each, the comment above it included.
func tests(t *testing.T) map[string]string {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	found := map[string]string{}
	testTexts(t, func(_ string, source []byte) {
		text := string(source)
		at := declared.FindAllStringSubmatchIndex(text, -1)
		for i, m := range at {
			end := len(text)
			if i+1 < len(at) {
				end = commentAbove(text, at[i+1][0])
			}
			found[text[m[2]:m[3]]] += text[commentAbove(text, m[0]):end]
		}
	})
	return found
}

// commentAbove is where the comment begins that ends at an offset, or the offset itself.
func commentAbove(text string, at int) int {
	for at > 0 {
		line := strings.LastIndexByte(text[:at-1], '\n') + 1
		if !strings.HasPrefix(text[line:at], "//") {
			break
		}
		at = line
	}
	return at
}

// namedIn are the rules that a text names, in any of the spellings TLS-16, TLS16, TestTLS_9_, TestPRX20to26_ and CRED-20 to CRED-34.
func namedIn(text string) map[string]bool {
	text = strings.ReplaceAll(text, "VersionTLS", "") // of crypto/tls
	named := map[string]bool{}
	rule := regexp.MustCompile(`(TLS|REQ|CRED|PRX)[-_ ]?(\d+)((?:_\d+)*)(?:(?:to| to (?:TLS|REQ|CRED|PRX)-)(\d+))?`)
	for _, m := range rule.FindAllStringSubmatch(text, -1) {
		for number := range strings.SplitSeq(m[2]+m[3], "_") {
			named[m[1]+"-"+strings.TrimLeft(number, "0")] = true
		}
		first, _ := strconv.Atoi(m[2])
		last, _ := strconv.Atoi(m[4])
		for n := first; n <= last; n++ {
			named[m[1]+"-"+strconv.Itoa(n)] = true
		}
	}
	return named
}

// TestTLS_REQ_CRED_PRX_EveryRuleIsNamedByATest: each rule that binds Linux is named by test functions somewhere in the repository. -v
// prints which.
func TestTLS_REQ_CRED_PRX_EveryRuleIsNamedByATest(t *testing.T) {
	held := map[string][]string{}
	found := tests(t)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		for rule := range namedIn(found[name]) {
			held[rule] = append(held[rule], name)
		}
	}
	for _, chapter := range slices.Sorted(maps.Keys(tlsRules)) {
		for _, r := range tlsRules[chapter] {
			for n := r[0]; n <= r[1]; n++ {
				rule := chapter + "-" + strconv.Itoa(n)
				why, exempt := noTLSRule[rule]
				switch names := held[rule]; {
				case exempt:
					t.Logf("%s: %s", rule, why)
				case len(names) == 0:
					t.Errorf("no test names %s", rule)
				default:
					t.Logf("%s: %s", rule, strings.Join(names, " "))
				}
			}
		}
	}
}

// heldBy fails unless each of some tests exists.
func heldBy(t *testing.T, what string, found map[string]string, names string) {
	t.Helper()
	if names == "" {
		t.Errorf("%s: no test holds it", what)
	}
	for _, name := range strings.Fields(names) {
		if _, exists := found[name]; !exists {
			t.Errorf("%s: there is no %s", what, name)
		}
	}
}

// TestTLS_PRX_EveryCaseIsATest: each case of the two chapters is a test, of which one says so.
func TestTLS_PRX_EveryCaseIsATest(t *testing.T) {
	said := regexp.MustCompile(`(?i)cases?[ _]?(\d+)((?:(?:, | and |_)\d+)*)(?: to (\d+))?`)
	found := tests(t)
	for chapter, cases := range map[string][]string{"tls-credentials": tlsCases, "srt-proxy": proxyCases} {
		for i, names := range cases {
			number := i + 1
			heldBy(t, chapter+" case "+strconv.Itoa(number), found, names)
			says := false
			for _, name := range strings.Fields(names) {
				for _, m := range said.FindAllStringSubmatch(found[name], -1) {
					first, _ := strconv.Atoi(m[1])
					last, _ := strconv.Atoi(m[3])
					says = says || number == first || number > first && number <= last ||
						slices.Contains(regexp.MustCompile(`\d+`).FindAllString(m[2], -1), strconv.Itoa(number))
				}
			}
			if !says {
				t.Errorf("%s case %d: none of %s says that it is that case", chapter, number, names)
			}
		}
	}
}

// TestLIMIT_EverySentenceIsHeld: what the reference cannot do, or does wrongly, and srt is to do right: each sentence of the two sections
// "Limits of the reference" has tests.
func TestLIMIT_EverySentenceIsHeld(t *testing.T) {
	found := tests(t)
	for i, l := range limits {
		heldBy(t, "LIMIT-"+strconv.Itoa(i+1)+" ("+l.what+")", found, l.tests)
	}
}
