package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/srt-sandbox/srt/runtime"
)

// exitDenied is the status of "srt explain why" when something that was asked about is refused: not that of a failure, so
// that a script can tell the two apart.
const exitDenied = 3

// whyFlags are the options of "srt explain why" and what each asks about.
var whyFlags = [...]struct {
	name, value string
	kind        runtime.QueryKind
}{
	{"read", "path", runtime.QueryRead}, {"write", "path", runtime.QueryWrite}, {"remove", "path", runtime.QueryRemove},
	{"connect", "host[:port]", runtime.QueryConnect}, {"unix", "path", runtime.QueryUnix},
}

// whyWord after "explain" asks about single things; after a "--" it is a command.
const whyWord = "why"

// takeWhy reads what follows the word "why" of "srt explain why".
func (inv *invocation) takeWhy(flags *pflag.FlagSet, words []string) ([]string, error) {
	for _, f := range whyFlags {
		flags.Var(&textValue{set: func(text string) error {
			if text == "" {
				return errors.New("it must name something")
			}
			inv.questions = append(inv.questions, runtime.Query{Kind: f.kind, Target: text})
			return nil
		}}, f.name, f.value)
	}
	rest, _, err := parseOptions(flags, words)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return nil, &usageError{fmt.Sprintf("explain why takes options alone, and %q is none", rest[0])}
	case inv.opts.command != "":
		return nil, &usageError{"explain why runs no command, so -c has no place there"}
	case len(inv.questions) == 0:
		return nil, &usageError{"explain why needs a question: --read PATH, --write PATH, --remove PATH, --connect HOST[:PORT] or --unix PATH"}
	}
	return nil, nil
}

// why is "srt explain why": it prints which rule decides about each thing that is asked about, and runs nothing.
func (a *app) why(ctx context.Context, s session, inv *invocation) int {
	verdicts, err := s.Why(ctx, inv.questions)
	if err != nil {
		return a.fail(err)
	}
	text, err := renderVerdicts(verdicts, inv.opts.json)
	if err != nil {
		return a.fail(err)
	}
	if code := a.print(text); code != 0 {
		return code
	}
	for i := range verdicts {
		if !verdicts[i].Allowed {
			return exitDenied
		}
	}
	return 0
}

// renderVerdicts formats answers: a JSON array for programs, for people one line each, with indented lines of what else
// matters.
func renderVerdicts(verdicts []runtime.Verdict, asJSON bool) (string, error) {
	if asJSON {
		data, err := json.MarshalIndent(verdicts, "", "  ")
		if err != nil {
			return "", fmt.Errorf("the answers could not be written as JSON: %w", err)
		}
		return string(data) + "\n", nil
	}
	var text strings.Builder
	for i := range verdicts {
		v := &verdicts[i]
		fmt.Fprintln(&text, v)
		for _, note := range v.Notes {
			fmt.Fprintf(&text, "  note: %s\n", note)
		}
		if v.Advice != "" {
			fmt.Fprintf(&text, "  to allow it: %s\n", v.Advice)
		}
	}
	return text.String(), nil
}

// Why implements session.
func (s *sandboxSession) Why(ctx context.Context, queries []runtime.Query) ([]runtime.Verdict, error) {
	return s.sandbox.WhyAll(ctx, queries)
}
