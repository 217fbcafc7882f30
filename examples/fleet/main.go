// Command fleet shows how a program embeds srt to run many commands at once: one session, some workers, for each command the
// hosts that it may reach, and one stream of everything that was refused.
//
//	go run ./examples/fleet -n 500 -workers 8 -hosts 4
//
// Nothing leaves the machine: the hosts are web servers of the program's own on the loopback. Each command may reach one of
// them, fetches from it, and tries the next one, which is refused to it. The program checks that every command got what is
// its own and that every refusal is known, then says how many commands a second that were.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// fetchWord is what the program is called with to be the command in the sandbox.
const fetchWord = "fetch"

func main() {
	if len(os.Args) > 1 && os.Args[1] == fetchWord {
		if err := fetch(os.Stdout, os.Args[2:]); err != nil {
			fail(err)
		}
		return
	}
	f, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	// An interrupt ends the commands; what they were is then waited for and closed as always.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	result, err := f.run(ctx)
	stop()
	if err != nil {
		fail(err)
	}
	result.print(os.Stdout)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "fleet:", err)
	os.Exit(1)
}

// parse reads the options. What is wrong with them has been written to w.
func parse(args []string, w io.Writer) (f fleet, err error) {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.SetOutput(w)
	flags.IntVar(&f.commands, "n", 500, "how many commands to run")
	flags.IntVar(&f.workers, "workers", 8, "how many of them at once")
	flags.IntVar(&f.hosts, "hosts", 4, "how many hosts there are, 2 or more")
	if err := flags.Parse(args); err != nil {
		return fleet{}, err
	}
	if f.commands < 1 || f.workers < 1 || f.hosts < 2 || flags.NArg() > 0 {
		fmt.Fprintln(w, "fleet: -n and -workers are 1 or more, -hosts is 2 or more, and nothing follows them")
		return fleet{}, errUsage
	}
	f.program, err = os.Executable()
	if err != nil {
		fmt.Fprintln(w, "fleet:", err)
	}
	return f, err
}

var errUsage = errors.New("wrong options")
