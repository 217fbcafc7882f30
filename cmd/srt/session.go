package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/srt-sandbox/srt/runtime/config"
)

// opener builds a sandbox that is ready to start commands. It gives up when ctx ends.
type opener func(ctx context.Context, cfg *config.Config, opts sessionOptions) (session, error)

// sessionOptions is what the command line passes on beside the settings.
type sessionOptions struct {
	ownFiles  []string // absolute paths of the settings file in use and of the default one, which commands cannot change
	debug     *slog.Logger
	debugging bool // the command sees SRT_DEBUG too (CLI-2)
	violation func(line string)
	warning   func(line string)
	timing    func(phase string)
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
