package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// explain is "srt explain": it prints what a command would run under, and runs nothing.
func (a *app) explain(inv *invocation) int {
	run := &execution{app: a, opts: &inv.opts, log: a.logger(&inv.opts)}
	read := run.settings()
	if read.err != nil {
		return a.fail(read.err)
	}
	var err error
	if run.control, err = run.openControl(); err != nil {
		return a.fail(err)
	}
	defer run.control.stop()
	ctx := context.Background()
	options := run.sessionOptions(read.value)
	options.warning = func(string) {} // The plan lists them.
	opened, err := a.open(ctx, read.value.config, options)
	if err != nil {
		return a.fail(err)
	}
	defer run.close(opened)
	if len(inv.questions) > 0 {
		return a.why(ctx, opened, inv)
	}
	plan, err := opened.Explain(ctx)
	if err != nil {
		return a.fail(err)
	}
	text, err := renderPlan(inv.plannedCommand(), plan, inv.opts.json)
	if err != nil {
		return a.fail(err)
	}
	return a.print(text)
}

// plannedCommand is the argv that a run would execute; nil when the line names none.
func (inv *invocation) plannedCommand() []string {
	if inv.opts.command != "" {
		return []string{"bash", "-c", inv.opts.command}
	}
	return inv.words
}

// renderPlan formats a plan: JSON for programs, text for people.
func renderPlan(command []string, plan explanation, asJSON bool) (string, error) {
	if asJSON {
		data, err := json.MarshalIndent(struct {
			Command []string    `json:"command,omitempty"`
			Plan    explanation `json:"plan"`
		}{command, plan}, "", "  ")
		if err != nil {
			return "", fmt.Errorf("the plan could not be written as JSON: %w", err)
		}
		return string(data) + "\n", nil
	}
	var text strings.Builder
	if len(command) > 0 {
		fmt.Fprintf(&text, "Command: %s\n", shellWords(command))
	}
	if err := plan.WriteText(&text); err != nil {
		return "", fmt.Errorf("the plan could not be written: %w", err)
	}
	return text.String(), nil
}
