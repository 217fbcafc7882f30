package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/srt-sandbox/srt/runtime/violation"
)

// The bounds of a summary.
const (
	summaryLines = 8    // shown
	summaryKinds = 1024 // kept apart
)

// firstFailedStart is the lowest status of a command that was not executed (126), or that a signal ended.
const firstFailedStart = 126

// refusals counts what a session refuses, for the summary after a command that failed. The zero value is ready; it is safe
// for concurrent use.
type refusals struct {
	mu    sync.Mutex
	seen  map[refusal]*count
	total int // all, those that are not kept apart too
}

// refusal is what makes two of them the same for a person: that one setting would allow both. Where none would, it is what
// was refused.
type refusal struct{ what, advice string }

type count struct {
	what, advice string // of the first
	others       bool   // not all are of the same
	times, order int
}

func (r *refusals) note(e violation.Event) {
	what, advice := strings.TrimPrefix(e.Line(), "deny "), e.Advice()
	key := refusal{what, advice}
	if !strings.HasPrefix(advice, "nothing in the settings allows it") {
		key.what = ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	c := r.seen[key]
	switch {
	case c != nil:
		c.others = c.others || c.what != what
	case len(r.seen) == summaryKinds:
		return
	default:
		if r.seen == nil {
			r.seen = map[refusal]*count{}
		}
		c = &count{what: what, advice: advice, order: len(r.seen)}
		r.seen[key] = c
	}
	c.times++
}

// What is said of the files where nobody watched: what was refused of them can be the cause, although the summary names another
// one, or none.
const (
	unwatchedBeside = "srt:   what the rules about files refuse is not in this list; --violations=FILE or -d shows it\n"
	unwatchedAlone  = "srt: if the rules about files refused something, --violations=FILE or -d shows it\n"
)

// write says what was refused, most frequent first, and which setting would allow it, and, if files are not watched, that there
// may be more. If nothing was refused it writes nothing.
func (r *refusals) write(w io.Writer, unwatched bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.total == 0 {
		return
	}
	list := make([]*count, 0, len(r.seen))
	for _, c := range r.seen {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *count) int { return cmp.Or(b.times-a.times, a.order-b.order) })
	var text strings.Builder
	text.WriteString("srt: the sandbox refused " + plural(r.total, "operation") + ", which may be why the command failed:\n")
	left := r.total
	for _, c := range list[:min(len(list), summaryLines)] {
		times, others := "", ""
		if c.times > 1 {
			times = fmt.Sprintf("%d x ", c.times)
		}
		if c.others {
			others = " and others"
		}
		fmt.Fprintf(&text, "srt:   %s%s%s; %s\n", times, c.what, others, c.advice)
		left -= c.times
	}
	if left > 0 {
		fmt.Fprintf(&text, "srt:   and %d more (--violations=FILE writes all of them)\n", left)
	}
	if unwatched {
		text.WriteString(unwatchedBeside)
	}
	_, _ = io.WriteString(w, text.String()) // nobody reads standard error
}

// none tells whether nothing was refused.
func (r *refusals) none() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total == 0
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
