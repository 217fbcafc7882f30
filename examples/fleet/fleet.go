package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
)

// fleet is what is to be run.
type fleet struct {
	commands, workers, hosts int
	program                  string // absolute path of this program, which the commands are as well
}

// result is what came of it.
type result struct {
	fleet
	took     time.Duration
	streamed map[string]int // by key: how much the stream said was refused to a command
	missed   uint64         // refusals that the stream did not have
}

// run runs the commands and waits for all of them. It returns the first thing that is not as it has to be, or the cause of a
// context that has ended; then, too, nothing of it is left.
func (f fleet) run(ctx context.Context) (result, error) {
	hosts, closeHosts, err := serve(f.hosts)
	if err != nil {
		return result{}, err
	}
	defer closeHosts()

	// No host is allowed to everyone: the settings are the built-in ones, and each command has a list of its own.
	sandbox, err := runtime.New(ctx, config.Default())
	if err != nil {
		return result{}, err
	}
	defer sandbox.Close() // for the ways out that come before Shutdown

	// The stream ends when the session is closed, after what came before. The buffer is for as much as this reader may lag.
	stream := sandbox.Violations().Watch(context.WithoutCancel(ctx), runtime.WatchBuffer(f.commands))
	streamed := make(chan map[string]int)
	go func() {
		count := map[string]int{}
		for v := range stream {
			count[v.Key]++
		}
		streamed <- count
	}()

	start := time.Now()
	err = f.work(ctx, sandbox, hosts)
	took := time.Since(start)

	// Shutdown waits for commands; here all have ended already.
	if closed := sandbox.Shutdown(context.WithoutCancel(ctx)); err == nil {
		err = closed
	}
	r := result{fleet: f, took: took, streamed: <-streamed}
	var seen uint64
	for _, n := range r.streamed {
		seen += uint64(n)
	}
	v := sandbox.Violations()
	r.missed = v.Total() - seen + v.Lost()
	return r, err
}

// work has the workers take one command after another. The first that goes wrong ends all.
func (f fleet) work(ctx context.Context, sandbox *runtime.Sandbox, hosts []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range f.workers {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < f.commands && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				own, other := hosts[i%len(hosts)], hosts[(i+1)%len(hosts)]
				if err := f.one(ctx, sandbox, own, other); err != nil {
					cancel(fmt.Errorf("command %d: %w", i, err))
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// one runs a command that may reach one host and tries another.
func (f fleet) one(ctx context.Context, sandbox *runtime.Sandbox, own, other string) error {
	cmd := sandbox.Command(ctx, f.program, fetchWord, own, other)
	cmd.AllowDomains = []string{own}
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*runtime.ExitError](err); ok {
		return fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	if err != nil {
		return err
	}
	if want := own + " 200 I am " + own + "\n" + other + " 403\n"; string(out) != want {
		return fmt.Errorf("it got %q, want %q", out, want)
	}
	// Its own list of what was refused, which the others do not shorten.
	var lines []string
	for v := range cmd.Violations() {
		lines = append(lines, v.Line)
	}
	if want := []string{"deny network-outbound " + other + " (host is not on the allow list)"}; !slices.Equal(lines, want) {
		return fmt.Errorf("it was refused %q, want %q", lines, want)
	}
	return nil
}

// print says what came of it.
func (r result) print(w io.Writer) {
	fmt.Fprintf(w, "%d commands by %d workers, %d hosts: %.2fs, %.0f commands a second\n",
		r.commands, r.workers, r.hosts, r.took.Seconds(), float64(r.commands)/r.took.Seconds())
	commands := map[int]int{} // by how many refusals each had
	if quiet := r.commands - len(r.streamed); quiet > 0 {
		commands[0] = quiet
	}
	for _, n := range r.streamed {
		commands[n]++
	}
	for _, n := range slices.Sorted(maps.Keys(commands)) {
		fmt.Fprintf(w, "commands that were refused %d: %d\n", n, commands[n])
	}
	fmt.Fprintf(w, "refusals that the stream missed: %d\n", r.missed)
}
