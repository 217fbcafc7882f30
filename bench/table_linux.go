package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// group is what several peers did with one load. The first row with samples is what the others are divided by.
type group struct {
	what string
	unit string // of every sample, such as "ms"; with "/s" at the end more is better
	rows []row
}

// row is one peer's part. Without samples the note says why.
type row struct {
	who     string
	samples []float64
	note    string
}

// table prints groups as they come, in columns as wide as the headline makes them.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer) *table {
	t := &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	fmt.Fprintln(t.w, "what\twho\tmedian\tmin - max\tratio\truns")
	return t
}

func (t *table) add(g group) {
	base, what := 0.0, g.what
	for _, r := range g.rows {
		if len(r.samples) == 0 {
			fmt.Fprintf(t.w, "%s\t%s\t-\t\t\t%s\n", what, r.who, oneLine(r.note))
			what = ""
			continue
		}
		m := median(r.samples)
		ratio := "1"
		if base == 0 {
			base = m
		} else {
			ratio = fmt.Sprintf("%.3g", m/base)
		}
		fmt.Fprintf(t.w, "%s\t%s\t%s %s\t%s - %s\t%s\t%d\n", what, r.who, number(m), g.unit,
			number(slices.Min(r.samples)), number(slices.Max(r.samples)), ratio, len(r.samples))
		what = ""
	}
}

func (t *table) flush() error { return t.w.Flush() }

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// number prints three digits that count.
func number(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 240 {
		s = s[:240] + "..."
	}
	return s
}
