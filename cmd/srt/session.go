package main

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"os"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// opener builds a sandbox that is ready to start commands. It gives up when ctx ends.
type opener func(ctx context.Context, cfg *config.Config, opts sessionOptions) (session, error)

// sessionOptions is what the command line passes on beside the settings.
type sessionOptions struct {
	ownFiles []string // absolute paths of the settings file in use and of the default one, which commands cannot change
	// privateFiles are absolute paths of files that no command may open: the control channel, where it has a name (CLI-30).
	privateFiles []string
	// nullDescriptor is where every command finds the null device, 0 for nowhere (CLI-30).
	nullDescriptor int
	ask            runtime.AskFunc // decides about undecided hosts, nil: they are refused
	debug          *slog.Logger
	debugging      bool // the command sees SRT_DEBUG too (CLI-2)
	monitor        runtime.Monitor
	violation      func(violation.Event) // is called for each refusal, from any goroutine
	warning        func(line string)
	timing         func(phase string)
}

// session is the part of runtime.Sandbox that the command line uses. Package runtime fills it (openSession); tests of
// this package fill it with a fake, so that parsing, signals and exit statuses need no sandbox.
type session interface {
	// Command prepares argv without a shell; name is looked up on the PATH of the sandbox.
	Command(ctx context.Context, name string, arg ...string) process
	// Shell prepares text for bash, or /bin/sh where there is none.
	Shell(ctx context.Context, text string) process
	// Explain says what a command would run under, and runs nothing.
	Explain(ctx context.Context) (explanation, error)
	// Why says which rules decide about some things, and runs nothing.
	Why(ctx context.Context, queries []runtime.Query) ([]runtime.Verdict, error)
	// Update puts another configuration in force, whole or not at all, for the command that already runs too. notLive names
	// the settings in which it differs from the one that the session began with and which are fixed at the start (CLI-32).
	// It is safe at any time, from any goroutine.
	Update(ctx context.Context, cfg *config.Config) (notLive []string, err error)
	// Watch gives each refusal from the call on, until the session is closed. A reader that lags by more than buffer misses
	// the oldest, which shows as a gap in Seq.
	Watch(ctx context.Context, buffer int) iter.Seq[runtime.Violation]
	// Total is how many refusals there were, and Lost how many more that nothing is known about.
	Total() uint64
	Lost() uint64
	// Close ends whatever still runs in the sandbox and removes what was made for it.
	Close() error
}

// process is one command in a sandbox. Its streams are those of srt.
type process interface {
	Start() error
	// Wait returns nil for exit status 0 and an *exitError for any other end of the command.
	Wait() error
	// Signal sends sig to the command's process group.
	Signal(sig os.Signal) error
	// InCallersGroup tells whether the command is in srt's own process group.
	InCallersGroup() bool
	// Kill ends every process of the sandbox.
	Kill() error
}

// explanation is a plan that can be printed; it can also be marshalled to JSON.
type explanation interface {
	WriteText(w io.Writer) error
}

// exitError is a command that ended with a status other than 0.
type exitError struct {
	code int
	// sentence is set when the command could not be started at all (statuses 126 and 127): nothing else has said why.
	sentence string
}

// Error returns the sentence, which may be empty.
func (e *exitError) Error() string { return e.sentence }
