package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/srt-sandbox/srt/runtime"
)

// options are the options of CLI-2, shared by every way to run a command. Of repeated ones the last wins.
type options struct {
	command    string // -c; empty means absent (CLI-6)
	debug      bool
	settings   string // as spelled; empty means the default file
	controlFD  int    // 0 means absent
	ask        bool
	askTimeout time.Duration // 0 means absent
	violations string        // where the JSON lines go, as spelled; empty means nowhere
	quiet      bool          // no summary of what was refused
	json       bool          // explain and check only
	help       bool
	version    bool
}

// invocation is a parsed command line.
type invocation struct {
	subcommand string          // key of subcommands, or empty for the compatible spelling
	opts       options         // options before and after the subcommand
	words      []string        // what is left: the command and its arguments
	questions  []runtime.Query // of "explain why", in their order; empty otherwise
}

// errStop ends parsing at -h and -V: nothing after them is looked at and nothing else happens (CLI-2).
var errStop = errors.New("nothing else happens")

// parse reads args (without the program's name). Options end at the first other word or at "--" (CLI-3); only a first
// word that no "--" precedes can be a subcommand (CLI-4), after which options may follow once more.
func parse(args []string) (*invocation, error) {
	inv := &invocation{}
	flags := inv.opts.flags()
	rest, dashes, err := parseOptions(flags, args)
	if err == nil && !dashes && len(rest) > 0 && subcommands[rest[0]] != nil {
		inv.subcommand = rest[0]
		rest = rest[1:]
		if inv.takesOptions() {
			inv.addOwnFlags(flags)
			rest, dashes, err = parseOptions(flags, rest)
			if err == nil && !dashes && inv.subcommand == "explain" && len(rest) > 0 && rest[0] == whyWord {
				rest, err = inv.takeWhy(flags, rest[1:])
			}
		}
	}
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	inv.words = rest
	return inv, nil
}

// takesOptions tells whether the options of CLI-2 may also follow the subcommand's name.
func (inv *invocation) takesOptions() bool {
	return inv.subcommand == "exec" || inv.subcommand == "explain" || inv.subcommand == "check"
}

// addOwnFlags adds what only this subcommand knows.
func (inv *invocation) addOwnFlags(flags *pflag.FlagSet) {
	if inv.subcommand == "explain" || inv.subcommand == "check" {
		flags.BoolVar(&inv.opts.json, "json", false, "")
	}
}

func (o *options) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("srt", pflag.ContinueOnError)
	flags.StringVarP(&o.command, shortOnly, shortOnly, "", "string")
	flags.BoolVarP(&o.debug, "debug", "d", false, "")
	flags.VarP(&textValue{set: o.setSettings}, "settings", "s", "path")
	flags.Var(&textValue{set: o.setControlFD}, "control-fd", "n")
	flags.BoolVar(&o.ask, "ask", false, "")
	flags.Var(&textValue{set: o.setAskTimeout}, "ask-timeout", "time")
	flags.Var(&textValue{set: o.setViolations}, "violations", "file")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "")
	stops := []struct {
		name, shorthand string
		seen            *bool
	}{{"help", "h", &o.help}, {"version", "V", &o.version}}
	for _, stop := range stops {
		flags.VarP(&textValue{set: func(string) error {
			*stop.seen = true
			return errStop
		}}, stop.name, stop.shorthand, "")
		flags.Lookup(stop.name).NoOptDefVal = "true"
	}
	return flags
}

// shortOnly is the one option without a long spelling. pflag insists on a long name; parseOptions refuses it.
const shortOnly = "c"

func (o *options) setSettings(path string) error {
	if path == "" {
		return errors.New("it must name a file")
	}
	o.settings = path
	return nil
}

// setControlFD takes decimal digits only, 3 or more (CLI-20).
func (o *options) setControlFD(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n < 3 {
		return errors.New("it must be an integer file descriptor >= 3")
	}
	o.controlFD = int(n)
	return nil
}

// setAskTimeout takes a time such as 90s or 2m, or a number of seconds.
func (o *options) setAskTimeout(text string) error {
	d, err := time.ParseDuration(text)
	if seconds, notSeconds := strconv.ParseUint(text, 10, 31); notSeconds == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || d < time.Second {
		return errors.New("it must be a time of at least one second, such as 90s or 2m")
	}
	o.askTimeout = d
	return nil
}

// textValue is a pflag.Value that hands every value to set.
type textValue struct{ set func(string) error }

// String returns nothing: no option has a default worth printing.
func (*textValue) String() string { return "" }

// Set passes text on.
func (v *textValue) Set(text string) error { return v.set(text) }

// Type names the kind of value as pflag asks for it.
func (*textValue) Type() string { return "text" }

// parseOptions consumes the options at the start of args and returns what follows them, and whether "--" ended them.
//
// pflag is handed one option at a time, so that the words it would take without an error are refused first (CLI-5).
func parseOptions(flags *pflag.FlagSet, args []string) (rest []string, dashes bool, err error) {
	for len(args) > 0 {
		word := args[0]
		if word == "--" {
			return args[1:], true, nil
		}
		if len(word) < 2 || word[0] != '-' {
			break
		}
		if hiddenFromPflag(word) {
			return nil, false, unknownOption(word)
		}
		used := 1
		err := flags.Parse(args[:1])
		var needsValue *pflag.ValueRequiredError
		if errors.As(err, &needsValue) && len(args) > 1 {
			used = 2
			err = flags.Parse(args[:2])
		}
		if err != nil {
			return nil, false, asUsageError(word, err)
		}
		args = args[used:]
	}
	return args, false, nil
}

// hiddenFromPflag tells whether word is an unknown option that pflag would accept: it silently drops what looks like an
// option of a Go test binary (-test.v, also in a group such as -dtest.v), and gives -c a long spelling.
func hiddenFromPflag(word string) bool {
	name, _, _ := strings.Cut(word, "=")
	return name == "--"+shortOnly || strings.HasPrefix(strings.TrimLeft(word[1:], "dhV"), "test.")
}

// usageError is a mistake on the command line: one "error: ..." line, exit 1 (CLI-5).
type usageError struct{ text string }

// Error returns the sentence without its "error: " prefix.
func (e *usageError) Error() string { return e.text }

// asUsageError words an error of pflag so that it names the option.
func asUsageError(word string, err error) error {
	var (
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.Is(err, errStop):
		return err
	case errors.As(err, &missing):
		return &usageError{fmt.Sprintf("option '%s' argument missing", optionName(missing.GetFlag()))}
	case errors.As(err, &invalid):
		return &usageError{fmt.Sprintf("option '%s' argument '%s' is invalid: %v",
			optionName(invalid.GetFlag()), invalid.GetValue(), invalid.Unwrap())}
	}
	return unknownOption(word)
}

func unknownOption(word string) error {
	name, _, _ := strings.Cut(word, "=")
	return &usageError{fmt.Sprintf("unknown option '%s'; options of the command itself go after its name", name)}
}

// optionName spells an option the way the help text does.
func optionName(flag *pflag.Flag) string {
	name := "--" + flag.Name
	switch {
	case flag.Name == shortOnly:
		name = "-" + shortOnly
	case flag.Shorthand != "":
		name = "-" + flag.Shorthand + ", " + name
	}
	if flag.Usage != "" {
		name += " <" + flag.Usage + ">"
	}
	return name
}
