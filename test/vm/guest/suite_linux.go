package main

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/srt-sandbox/srt/test/vm/internal/record"
)

// keptOutput is how much of what a failing test program printed goes to the host, in bytes from the end.
const keptOutput = 1 << 20

// suite runs the test program of a folder as an account, in that folder of the tree, and tells of each test.
func (g *guest) suite(a account, folder string) error {
	program := filepath.Join(disk, "tests", strings.ReplaceAll(folder, "/", "-"))
	cmd := a.command(program, "-test.v", "-test.count=1", "-test.short", "-test.timeout=20m")
	cmd.Dir = filepath.Join(disk, "tree", folder)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return err
	}
	p := &record.Package{Package: folder, Account: a.name, Exit: cmd.ProcessState.ExitCode(), Seconds: time.Since(begin).Seconds()}
	for _, t := range outcomes(out) {
		t.Package, t.Account = folder, a.name
		if err := g.out.Encode(record.Line{Kind: record.KindTest, Test: &t}); err != nil {
			return err
		}
	}
	if p.Exit != 0 {
		p.Output = string(out[max(0, len(out)-keptOutput):])
	}
	return g.out.Encode(record.Line{Kind: record.KindPackage, Package: p})
}

// outcome is a line of a test's end. The indentation tells a subtest.
var outcome = regexp.MustCompile(`^( *)--- (PASS|FAIL|SKIP): (\S+) \(`)

// outcomes are those of all test functions, and of the subtests that failed.
func outcomes(out []byte) []record.Test {
	var tests []record.Test
	for line := range bytes.Lines(out) {
		if m := outcome.FindStringSubmatch(string(line)); m != nil && (m[1] == "" || m[2] == "FAIL") {
			tests = append(tests, record.Test{Name: m[3], Outcome: strings.ToLower(m[2])})
		}
	}
	return tests
}
