package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/test/vm/internal/record"
)

// writeSuites is how the tests ended, and what became of those that did not pass.
func writeSuites(w *strings.Builder, all []result) {
	w.WriteString("## Tests\n\nThe exit status of each test program, and who ran it. Those of `ns` and `test` run their tests as a user, too, when root starts them.\n\n")
	head, rows := []string{"folder"}, [][]string(nil)
	for _, r := range all {
		head = append(head, r.System.Release)
	}
	rows = append(rows, head)
	for _, s := range suites {
		row := []string{"`" + s.Folder + "`"}
		for _, r := range all {
			row = append(row, r.exits(s.Folder))
		}
		rows = append(rows, row)
	}
	counts := [][]string{{"tests that passed"}, {"failed"}, {"skipped"}}
	for _, r := range all {
		for i, n := range []int{r.Passed, len(r.Failed), len(r.Skipped)} {
			counts[i] = append(counts[i], fmt.Sprint(n))
		}
	}
	table(w, slices.Concat(rows, counts))
	writeFailed(w, all)
	writeSkipped(w, all)
}

// exits are the exit statuses of a folder's test program.
func (r *result) exits(folder string) string {
	var text []string
	if !slices.ContainsFunc(r.Packages, func(p record.Package) bool { return p.Package == folder }) {
		return "not run"
	}
	for _, p := range r.Packages {
		if p.Package == folder {
			text = append(text, fmt.Sprintf("%s: %d", p.Account, p.Exit))
		}
	}
	return strings.Join(text, ", ")
}

// writeFailed names the tests that failed, by the reason.
func writeFailed(w *strings.Builder, all []result) {
	var order []string
	tests := map[string][]string{}
	for _, r := range all {
		for _, t := range r.Failed {
			why := explain(r.Suite, t)
			if why == "" {
				why = "Not looked into yet."
			}
			if !slices.Contains(order, why) {
				order = append(order, why)
			}
			if text := fmt.Sprintf("%s: `%s` of `%s` as %s", r.System.Release, t.Name, t.Package, t.Account); !strings.Contains(t.Name, "/") {
				tests[why] = append(tests[why], text)
			}
		}
	}
	if len(order) == 0 {
		return
	}
	w.WriteString("### Failed\n\n")
	for _, why := range order {
		fmt.Fprintf(w, "%s\n\n- %s\n\n", why, strings.Join(tests[why], "\n- "))
	}
}

// writeSkipped names the tests that were skipped, and where.
func writeSkipped(w *strings.Builder, all []result) {
	rows := [][]string{{"skipped", "folder", "kernels"}}
	where := map[record.Test][]string{}
	var order []record.Test
	for _, r := range all {
		for _, t := range r.Skipped {
			t.Account = ""
			if len(where[t]) == 0 {
				order = append(order, t)
			}
			if !slices.Contains(where[t], r.Suite) {
				where[t] = append(where[t], r.Suite)
			}
		}
	}
	for _, t := range order {
		rows = append(rows, []string{"`" + t.Name + "`", "`" + t.Package + "`", strings.Join(where[t], ", ")})
	}
	if len(order) > 0 {
		w.WriteString("### Skipped\n\nWhat a test lacked is in its words (`got ..., want ...`): mostly a tool that the guests do not have, or another account.\n\n")
		table(w, rows)
	}
}
