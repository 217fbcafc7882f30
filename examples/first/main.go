// Command first is the shortest whole program that embeds srt: it runs its arguments where they may write in the working
// directory, but for git's own, and reach one host.
//
//	go run ./examples/first make test
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
)

const settings = `{
  "network":    { "allowedDomains": ["modules.example.com"], "deniedDomains": [] },
  "filesystem": { "denyRead": ["~/.ssh"], "allowWrite": ["."], "denyWrite": [".git"] }
}`

func main() {
	code, err := run(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "first:", err)
	}
	os.Exit(code)
}

// run runs a command and gives its exit status.
func run(ctx context.Context, args []string) (int, error) {
	if len(args) == 0 {
		return 1, errors.New("which command?")
	}
	cfg, err := config.Decode([]byte(settings))
	if err != nil {
		return 1, err // what is wrong with the settings, key by key
	}
	sandbox, err := runtime.New(ctx, cfg)
	if err != nil {
		return 1, err // what is missing here
	}
	defer sandbox.Close()

	cmd := sandbox.Command(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	for v := range cmd.Violations() {
		fmt.Fprintln(os.Stderr, v.Line, "-", v.Advice())
	}
	if failed, ok := errors.AsType[*runtime.ExitError](err); ok {
		return failed.Code, nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
