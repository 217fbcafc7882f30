package main

import (
	"io"
	"os"
	"time"
)

func main() {
	a := &app{
		stdin:    os.Stdin,
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		getenv:   os.Getenv,
		open:     openSession,
		terminal: openTerminal,
		person:   stderrIsTerminal,
		grace:    killGrace,
		started:  time.Now(),
	}
	os.Exit(a.run(os.Args[1:]))
}

// app is one run of the command line: its streams, its environment and the way to a sandbox. Tests replace single
// fields; main fills them with the process's own.
type app struct {
	stdin  *os.File
	stdout io.Writer
	stderr io.Writer
	getenv func(string) string
	open   opener
	// terminal opens the terminal that --ask asks on.
	terminal func() (*os.File, error)
	// person tells whether a person reads standard error; nil: nobody does.
	person func() bool
	// grace is the time a command has to end by itself after an escalating signal (CLI-15).
	grace   time.Duration
	started time.Time
}

// subcommands maps the first word that is not an option to what it starts (CLI-4). Names beginning with two
// underscores are called by srt itself from inside a sandbox and are not in the help text.
var subcommands = map[string]func(*app, *invocation) int{
	"exec":              (*app).exec,
	"explain":           (*app).explain,
	"check":             (*app).check,
	"proxy":             (*app).proxy,
	"windows-install":   (*app).windowsOnly,
	"windows-uninstall": (*app).windowsOnly,
	"__ssh-connect":     (*app).sshConnect,
}

// run parses args (without the program's name), does what they ask and returns the exit status.
func (a *app) run(args []string) int {
	a.stderr = &lockedWriter{w: a.stderr}
	inv, err := parse(args)
	if err != nil {
		return a.usage(err)
	}
	switch {
	case inv.opts.help:
		return a.print(helpText)
	case inv.opts.version:
		return a.print(versionString() + "\n")
	case inv.subcommand == "":
		return a.compatible(inv)
	}
	return subcommands[inv.subcommand](a, inv)
}

// print writes text to standard output. A reader that went away is no failure of srt.
func (a *app) print(text string) int {
	if _, err := io.WriteString(a.stdout, text); err != nil {
		return a.fail(err)
	}
	return 0
}
