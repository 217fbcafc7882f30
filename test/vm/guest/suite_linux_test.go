package main

import (
	"slices"
	"testing"

	"github.com/srt-sandbox/srt/test/vm/internal/record"
)

func TestOutcomes(t *testing.T) {
	const out = `=== RUN   TestA
--- PASS: TestA (0.01s)
=== RUN   TestB
    --- PASS: TestB/x (0.00s)
    --- FAIL: TestB/y (0.00s)
--- FAIL: TestB (0.02s)
--- SKIP: TestC (0.00s)
    c_test.go:9: --- FAIL: not a test
FAIL
`
	want := []record.Test{{Name: "TestA", Outcome: record.Pass}, {Name: "TestB/y", Outcome: record.Fail}, {Name: "TestB", Outcome: record.Fail},
		{Name: "TestC", Outcome: record.Skip}}
	if got := outcomes([]byte(out)); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
