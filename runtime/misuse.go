package runtime

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// What is handed over wrongly is said in an error and never a panic in somebody's process: values that nobody has made, and
// what no system call could take.

var (
	// errNotBegun is the error of a Sandbox that New has not made. It matches ErrClosed, and such a session is like a closed one:
	// it starts nothing, and its getters answer for the built-in configuration.
	errNotBegun   = fmt.Errorf("%w: it was never started; make one with New", ErrClosed)
	errNilContext = errors.New("the context is nil; give context.Background() if there is none")
	errNoSession  = errors.New("the command belongs to no session; make it with Sandbox.Command or Sandbox.Shell")
)

// begunIn tells why nothing can be asked of a session: New has not made it, or there is no context, or it has ended.
func (s *Sandbox) begunIn(ctx context.Context) error {
	if !s.isBegun() {
		return errNotBegun
	}
	return ended(ctx)
}

// isBegun tells whether New has made the session.
func (s *Sandbox) isBegun() bool { return s.done != nil }

// ended is the cause of a context that has ended, or the error for none.
func ended(ctx context.Context) error {
	switch {
	case ctx == nil:
		return errNilContext
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// misused tells what is wrong with the command itself.
func (c *Cmd) misused() error {
	switch {
	case c.sandbox == nil || c.ctx == nil:
		return &LaunchError{"check the command", c.Path, errNoSession}
	case !c.sandbox.isBegun():
		return errNotBegun
	}
	if err := c.holdsNUL(); err != nil {
		return &LaunchError{"check the command", c.Path, err}
	}
	return nil
}

// holdsNUL finds what the system would cut short: every string that it takes ends at its first NUL byte. The values are not
// repeated, since they may be secrets.
func (c *Cmd) holdsNUL() error {
	for _, field := range [...]struct{ name, value string }{{"Path", c.Path}, {"Dir", c.Dir}, {"ShellPath", c.ShellPath}, {"the script", c.script}} {
		if strings.IndexByte(field.value, 0) >= 0 {
			return fmt.Errorf("%s of the command holds a NUL byte, which the system takes for its end", field.name)
		}
	}
	for i, arg := range c.Args {
		if strings.IndexByte(arg, 0) >= 0 {
			return fmt.Errorf("argument %d of the command holds a NUL byte, which the system takes for its end", i)
		}
	}
	for i, entry := range c.Env {
		if strings.IndexByte(entry, 0) < 0 {
			continue
		}
		name, _, _ := strings.Cut(entry, "=")
		if strings.IndexByte(name, 0) >= 0 {
			name = "entry " + strconv.Itoa(i)
		}
		return fmt.Errorf("%s of Env holds a NUL byte, which the system takes for its end", name)
	}
	return nil
}
