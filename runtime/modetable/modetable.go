package modetable

import (
	"fmt"
	"strings"
)

// Verdict is what something is worth in a mode.
type Verdict uint8

// The verdicts. The zero value is the strictest.
const (
	Refused  Verdict = iota // what asks for it ends the start
	Partly                  // parts of it end the start, the rest holds
	Differs                 // it holds in another way, which a person has to know of
	NoEffect                // it is taken and does nothing
	Held                    // as in mode full
)

var verdictNames = [...]string{"refused", "refused in part", "differs", "no effect", "held"}

// String is the verdict as the page has it.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "unknown"
}

// Cell is one mode of a row: the verdict, and what else there is to say, a sentence or nothing.
type Cell struct {
	Verdict Verdict
	Text    string
}

// Row is one line of the table.
type Row struct {
	// ID does not change: tests and refusals name it.
	ID string
	// What it is about, for people, where that is no setting.
	What string
	// Settings are the keys that it is about, as docs/settings.md has them with their section. Empty for what no setting is about.
	Settings []string
	// Cells are for the modes full, nested and confined, in this order.
	Cells [3]Cell
}

// modes are the names of the columns, as package runtime has them (runtime.Mode).
var modes = [3]string{"full", "nested", "confined"}

// In gives the cell of a mode. A mode that the table does not know refuses everything.
func (r *Row) In(mode string) Cell {
	for i, m := range modes {
		if m == mode {
			return r.Cells[i]
		}
	}
	return Cell{Verdict: Refused, Text: "no such mode"}
}

// Rows is the table. The caller must not change it.
func Rows() []Row { return rows }

// Find gives the row of an ID.
func Find(id string) (*Row, bool) {
	for i := range rows {
		if rows[i].ID == id {
			return &rows[i], true
		}
	}
	return nil, false
}

// Excused says whether a row lets a test of full mode fail in another mode, and with what words: its cell is not that of mode full. An
// unknown ID panics: a test must not excuse itself by what the page does not say.
func Excused(mode, id string) (why string, excused bool) {
	r, ok := Find(id)
	if !ok {
		panic("modetable: no row " + id)
	}
	full, here := r.In(modes[0]), r.In(mode)
	if here == full || here.Verdict == Held {
		return "", false
	}
	return fmt.Sprintf("mode %s: %s: %s. %s", mode, id, here.Verdict, here.Text), true
}

// Page puts the tables into a page, between the marks of each. The error says which mark is missing.
func Page(page string) (string, error) {
	for name, only := range map[string]func(*Row) bool{
		"settings": func(r *Row) bool { return len(r.Settings) > 0 },
		"rest":     func(r *Row) bool { return len(r.Settings) == 0 },
	} {
		begin, end := "<!-- generated: "+name+" -->\n", "<!-- end: "+name+" -->"
		before, rest, ok := strings.Cut(page, begin)
		_, after, ends := strings.Cut(rest, end)
		if !ok || !ends {
			return "", fmt.Errorf("the page lacks %q or %q", begin, end)
		}
		page = before + begin + table(only) + end + after
	}
	return page, nil
}

func table(only func(*Row) bool) string {
	var b strings.Builder
	b.WriteString("| | full | nested | confined | id |\n|---|---|---|---|---|\n")
	for i := range rows {
		if r := &rows[i]; only(r) {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | `%s` |\n", r.title(), r.Cells[0], r.Cells[1], r.Cells[2], r.ID)
		}
	}
	return b.String()
}

func (r *Row) title() string {
	names := make([]string, len(r.Settings))
	for i, s := range r.Settings {
		names[i] = "`" + s + "`"
	}
	if r.What == "" {
		return strings.Join(names, ", ")
	}
	if len(names) == 0 {
		return r.What
	}
	return r.What + ": " + strings.Join(names, ", ")
}

// String is the cell as the page has it.
func (c Cell) String() string {
	if c.Text == "" {
		return c.Verdict.String()
	}
	return "**" + c.Verdict.String() + "**: " + c.Text
}
