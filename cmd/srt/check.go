package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
)

// modeStatus are the exit statuses of "srt check": scripts can tell the modes apart without reading anything. Where settings are
// checked that cannot be kept here, the status is exitFailure, whatever the mode.
var modeStatus = map[runtime.Mode]int{
	runtime.ModeFull:     0,
	runtime.ModeNested:   10,
	runtime.ModeConfined: 11,
	runtime.ModeNone:     exitFailure,
}

// check is "srt check": it says in which mode commands are confined here and why, feature by feature, and runs nothing. It is about
// the system; with --settings also about what the file asks for that cannot be had here.
func (a *app) check(inv *invocation) int {
	if err := inv.refuseForCheck(); err != nil {
		return a.usage(err)
	}
	var cfg *config.Config
	ctx := context.Background()
	run := &execution{app: a, opts: &inv.opts, log: a.logger(&inv.opts)}
	var read *settings
	if inv.opts.settings != "" {
		var err error
		if read, err = a.settings(run.opts, run.log); err != nil {
			return a.fail(err)
		}
		cfg = read.config
	}
	report, err := runtime.Check(ctx, cfg)
	if err != nil {
		return a.fail(err)
	}
	if read != nil && len(report.Errors) == 0 {
		if err := run.tryPlan(ctx, read); err != nil {
			report.Errors = append(report.Errors, err.Error())
		}
	}
	text, err := renderReport(report, inv.opts.json)
	if err != nil {
		return a.fail(err)
	}
	if status := a.print(text); status != 0 {
		return status
	}
	if len(report.Errors) > 0 {
		return exitFailure
	}
	return modeStatus[report.Mode]
}

// tryPlan compiles what a command would run under, and says what the mode at hand cannot give.
func (e *execution) tryPlan(ctx context.Context, s *settings) error {
	options := e.sessionOptions(s)
	options.warning = func(string) {}
	opened, err := e.app.open(ctx, s.config, options)
	if err != nil {
		return err
	}
	defer e.close(opened)
	_, err = opened.Explain(ctx)
	return err
}

// refuseForCheck refuses what has no meaning for "srt check".
func (inv *invocation) refuseForCheck() error {
	o := &inv.opts
	switch {
	case len(inv.words) > 0 || o.command != "":
		return &usageError{"srt check takes no command; to run one that is called check: srt -- check"}
	case o.ask || o.askTimeout != 0 || o.controlFD != 0 || o.violations != "":
		return &usageError{"srt check takes --json, --settings and --debug alone"}
	}
	return nil
}

// renderReport formats what was found: JSON for programs, text for people with the mode and what to do first.
func renderReport(r runtime.Report, asJSON bool) (string, error) {
	if asJSON {
		data, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return "", fmt.Errorf("what was found could not be written as JSON: %w", err)
		}
		return string(data) + "\n", nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Mode: %s\n", r.Mode)
	list := func(title string, lines []string) {
		for _, line := range lines {
			fmt.Fprintf(&text, "%s: %s\n", title, line)
		}
	}
	errs := strings.Join(r.Errors, "\n")
	list("Why", slices.DeleteFunc(slices.Clone(r.Reasons), func(why string) bool { return strings.Contains(errs, why) }))
	if r.Remedy != nil {
		fmt.Fprintf(&text, "To do: %s\n", r.Remedy.Text)
		writeRemedy(&text, r.Remedy)
	}
	list("Error", r.Errors)
	list("Warning", r.Warnings)
	if err := writeFeatures(&text, r.Features); err != nil {
		return "", err
	}
	return text.String(), nil
}

// writeRemedy writes the file and the commands, so that they can be copied as they are.
func writeRemedy(w io.Writer, r *runtime.Remedy) {
	if r.File != "" {
		fmt.Fprintf(w, "\n  %s:\n\n", r.File)
		for line := range strings.Lines(r.Content) {
			if line == "\n" {
				fmt.Fprint(w, line)
				continue
			}
			fmt.Fprintf(w, "    %s", line)
		}
	}
	for _, c := range r.Commands {
		fmt.Fprintf(w, "\n    %s\n", c)
	}
	if len(r.Commands) > 0 {
		fmt.Fprintln(w)
	}
}

// writeFeatures writes a line for each feature, and beneath those that are missing what they are for and how to have them.
func writeFeatures(w io.Writer, features []runtime.Feature) error {
	if len(features) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nFeatures:")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var missing []runtime.Feature
	for _, f := range features {
		has := "yes"
		found := f.Found
		switch {
		case f.Unasked:
			has = "no"
		case !f.Present:
			has, found = "no", "see below"
			missing = append(missing, f)
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", has, f.Key, f.Name, found)
	}
	err := table.Flush()
	for _, f := range missing {
		fmt.Fprintf(w, "\nNo %s (%s): %s.\n  For: %s.\n  Needs: %s.\n", f.Key, f.Name, strings.TrimSuffix(f.Found, "."), f.Why, f.Needs)
		if f.Remedy != nil {
			fmt.Fprintf(w, "  To do: %s.\n", strings.TrimSuffix(f.Remedy.String(), "."))
		}
	}
	return err
}
