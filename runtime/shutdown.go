package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Close ends the session: it refuses further launches, ends those that are under way, cuts every proxied connection at once
// and forgets the token, the lists, the credentials and the texts of commands. It does not kill commands: they stay
// confined, lose the network, and are waited for as before. The violations stay readable, and so do the getters (LIB-35).
//
// When it returns, no goroutine of the session is left but those of commands that still run. It is idempotent; every call
// returns once the session is closed, and with the same error, which says what could not be removed.
func (s *Sandbox) Close() error {
	s.closed.Do(func() {
		if s.isBegun() {
			s.closeErr = s.close()
			close(s.done)
		}
	})
	return s.closeErr
}

// Done returns a channel that is closed when the session is closed.
func (s *Sandbox) Done() <-chan struct{} {
	if !s.isBegun() {
		never := make(chan struct{})
		close(never)
		return never
	}
	return s.done
}

// killPatience is how long Shutdown waits for what it has killed: a process can be in a call that nothing interrupts.
const killPatience = 2 * time.Second

// Shutdown refuses further launches, waits until the commands have ended and closes the session. When ctx ends first it
// kills those that still run, ends launches that are under way, closes, and returns ctx's cause (LIB-51), joined with what
// else went wrong, if anything did. Without a context it does nothing but say so.
func (s *Sandbox) Shutdown(ctx context.Context) error {
	switch {
	case ctx == nil:
		return errNilContext
	case !s.isBegun():
		return nil
	}
	s.mu.Lock()
	s.refusing = true
	s.mu.Unlock()
	s.revokeAll()
	cause := s.until(ctx, s.idle)
	if cause == nil {
		return s.Close()
	}
	s.mu.Lock()
	s.closing = true // what is being launched ends by itself
	s.mu.Unlock()
	err := s.killAll()
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), killPatience)
	defer cancel()
	if s.until(patience, s.idle) != nil {
		err = errors.Join(err, fmt.Errorf("commands that were killed have not ended within %v", killPatience))
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// idle tells whether nothing is launched and nothing runs. It is asked under the lock.
func (s *Sandbox) idle() bool { return len(s.commands) == 0 }

// killAll kills every command that runs.
func (s *Sandbox) killAll() error {
	s.mu.Lock()
	running := make([]*Cmd, 0, len(s.commands))
	for c := range s.commands {
		running = append(running, c)
	}
	s.mu.Unlock()
	var errs []error
	for _, c := range running {
		if err := c.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, errNotStarted) {
			errs = append(errs, fmt.Errorf("end %s: %w", c.Path, err))
		}
	}
	return errors.Join(errs...)
}

func (s *Sandbox) close() error {
	s.mu.Lock()
	s.refusing, s.closing = true, true
	s.mu.Unlock()
	s.revokeAll()
	s.updating.Lock() // none is installed after this
	s.state.Store(&state{cfg: s.current().cfg})
	s.updating.Unlock()
	var errs []error
	if err := s.proxy.Close(); err != nil {
		errs = append(errs, fmt.Errorf("close the proxies: %w", err))
	}
	if err := s.tracing.close(); err != nil {
		errs = append(errs, fmt.Errorf("take the tracer out of the kernel: %w", err))
	}
	if err := s.hooks.close(); err != nil {
		errs = append(errs, fmt.Errorf("take the hooks out of the kernel: %w", err))
	}
	if err := s.secrets.Close(); err != nil {
		errs = append(errs, fmt.Errorf("forget the credentials: %w", err))
	}
	if err := s.trust.close(); err != nil {
		errs = append(errs, err)
	}
	s.token.Store(new(string))
	s.store.Forget()
	s.store.Close()
	s.lists.Reset()
	return errors.Join(errs...)
}

// until waits until a condition holds, which is asked under the lock whenever a command has ended. It returns ctx's cause
// when ctx ends first.
func (s *Sandbox) until(ctx context.Context, holds func() bool) error {
	for {
		s.mu.Lock()
		if holds() {
			s.mu.Unlock()
			return nil
		}
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// register notes a command that is about to be launched.
func (s *Sandbox) register(c *Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return ErrClosed
	}
	s.commands[c] = struct{}{}
	return nil
}

// forget notes that nothing is left of a command.
func (s *Sandbox) forget(c *Cmd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.commands, c)
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// isClosing tells whether launches that are under way are to end.
func (s *Sandbox) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}
