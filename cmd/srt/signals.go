package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// killGrace is how long a command may take to end after a signal that escalates (CLI-15).
const killGrace = 2000 * time.Millisecond

// forwarded is a signal that srt catches and passes on to the command.
type forwarded struct {
	signal syscall.Signal
	name   string
	// escalates: a command that is still there after killGrace is killed with all of its sandbox.
	escalates bool
	// keyboard: a terminal sends it to the whole foreground process group by itself.
	keyboard bool
}

// forwardedSignals is the table of CLI-14 and CLI-15.
var forwardedSignals = []forwarded{
	{signal: syscall.SIGINT, name: "SIGINT", keyboard: true},
	{signal: syscall.SIGTERM, name: "SIGTERM", escalates: true},
	{signal: syscall.SIGHUP, name: "SIGHUP", escalates: true},
	{signal: syscall.SIGQUIT, name: "SIGQUIT", escalates: true, keyboard: true},
}

// status is the exit status of a run that this signal ended (docs/cli.md: 128+n, for SIGINT and SIGTERM too).
func (f forwarded) status() int { return 128 + int(f.signal) }

// catchSignals starts to catch the forwarded signals and returns where they arrive, and how to stop. A signal that was
// ignored when srt started stays ignored, so that nohup and a shell's background jobs keep their meaning.
func catchSignals() (<-chan os.Signal, func()) {
	var wanted []os.Signal
	for _, f := range forwardedSignals {
		if !signal.Ignored(f.signal) {
			wanted = append(wanted, f.signal)
		}
	}
	caught := make(chan os.Signal, len(forwardedSignals))
	if len(wanted) > 0 { // Notify without a list would catch every signal.
		signal.Notify(caught, wanted...)
	}
	return caught, func() { signal.Stop(caught) }
}

// lookUp finds the row of a signal that catchSignals delivered.
func lookUp(sig os.Signal) forwarded {
	for _, f := range forwardedSignals {
		if f.signal == sig {
			return f
		}
	}
	panic("a signal that was not asked for: " + sig.String())
}
