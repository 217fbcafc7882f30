package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/srt-sandbox/srt/test/vm/internal/record"
)

// keptOutput is how much of what a failing test program printed goes to the host, in bytes from the end.
const keptOutput = 1 << 20

// suites runs what the list on the disk names.
func (g *guest) suites(who []account) error {
	data, err := os.ReadFile(filepath.Join(disk, record.SuitesFile))
	if err != nil {
		return err
	}
	var list []record.Suite
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, s := range list {
		for _, a := range who {
			if !slices.Contains(s.Accounts, a.name) {
				continue
			}
			if err := g.suite(a, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// suite runs the test program of a folder as an account, in that folder of the tree, and tells of each test.
func (g *guest) suite(a account, s record.Suite) error {
	folder := s.Folder
	program := filepath.Join(disk, "tests", strings.ReplaceAll(folder, "/", "-"))
	cmd := a.command(program, "-test.v", "-test.count=1", "-test.short", "-test.timeout=20m", "-test.run="+s.Run)
	if s.Skip != "" {
		cmd.Args = append(cmd.Args, "-test.skip="+s.Skip)
	}
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
