package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/srt-sandbox/srt/test/vm/internal/record"
)

// result is what one kernel gave.
type result struct {
	Suite    string           `json:"suite"`   // of Debian
	Package  string           `json:"package"` // version of the kernel's package
	System   record.System    `json:"system"`
	Sights   []record.Sight   `json:"sights"`
	Packages []record.Package `json:"packages"`
	// Cut says that the machine was ended before it had run all tests.
	Cut bool `json:"cut,omitempty"`
	// Passed counts tests; those that failed or were skipped are named.
	Passed  int           `json:"passed"`
	Failed  []record.Test `json:"failed"`
	Skipped []record.Test `json:"skipped"`
}

// add takes a record in.
func (r *result) add(l record.Line) {
	switch {
	case l.Kind == record.KindCut:
		r.Cut = true
	case l.System != nil:
		// A variant has its own list of security modules; the system as it comes is told last.
		r.System = *l.System
	case l.Sight != nil:
		r.Sights = append(r.Sights, *l.Sight)
	case l.Package != nil:
		p := *l.Package
		p.Output = ""
		r.Packages = append(r.Packages, p)
	case l.Test == nil:
	case l.Test.Outcome == record.Fail:
		r.Failed = append(r.Failed, *l.Test)
	case l.Test.Outcome == record.Skip:
		r.Skipped = append(r.Skipped, *l.Test)
	default:
		r.Passed++
	}
}

// sight is what srt said to an account under a variant.
func (r *result) sight(variant, account string) (record.Sight, bool) {
	i := slices.IndexFunc(r.Sights, func(s record.Sight) bool { return s.Variant == variant && (s.Account == account || s.Unset) })
	if i < 0 {
		return record.Sight{}, false
	}
	return r.Sights[i], true
}

// unexplained are the failures that failures.go says nothing of.
func (r *result) unexplained() []record.Test {
	return slices.DeleteFunc(slices.Clone(r.Failed), func(t record.Test) bool { return explain(r.Suite, t) != "" })
}

// results reads what was kept, the oldest kernel first.
func results() ([]result, error) {
	data, err := os.ReadFile(resultsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []result
	err = json.Unmarshal(data, &all)
	return all, err
}

// keep writes a result in the place of the kernel's earlier one.
func keep(r result) error {
	all, err := results()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(old result) bool { return old.Suite == r.Suite })
	all = append(all, r)
	at := func(r result) int {
		return slices.IndexFunc(kernels, func(k kernel) bool { return k.Suite == r.Suite })
	}
	slices.SortFunc(all, func(a, b result) int { return at(a) - at(b) })
	data, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(resultsFile, append(data, '\n'), 0o644)
}
