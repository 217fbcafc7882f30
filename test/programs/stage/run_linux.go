package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Result is how a program ended.
type Result struct {
	Args           []string
	Status         int // exit status; minus the number of the signal that killed it
	Stdout, Stderr string
}

// String shows all of r.
func (r Result) String() string {
	return fmt.Sprintf("%q: status %d\n--- stdout\n%s--- stderr\n%s", r.Args, r.Status, r.Stdout, r.Stderr)
}

// Shell is the command line that runs shell text as every run of a stage does.
func Shell(text string) []string { return []string{"bash", "-e", "-c", text} }

// Srt is the command line that runs a command under a settings file. srt adds no summary: what a program says is compared.
func (s *Stage) Srt(settings string, command ...string) []string {
	return append([]string{srtPath, "--quiet", "-s", settings, "exec", "--"}, command...)
}

// Outside runs shell text in the project as it is, to its end.
func (s *Stage) Outside(text string) Result {
	s.T.Helper()
	return s.Finish(s.Command(Shell(text)...))
}

// Inside runs shell text in the project in a sandbox under a settings file, to its end.
func (s *Stage) Inside(settings, text string) Result {
	s.T.Helper()
	return s.Finish(s.Command(s.Srt(settings, Shell(text)...)...))
}

// Command prepares a program as the account. It is killed when the test takes too long.
func (s *Stage) Command(args ...string) *exec.Cmd {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), Patience)
	s.T.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.Work, s.Env, Patience
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(s.Who.UID), Gid: uint32(s.Who.GID)}
	}
	return cmd
}

// Finish runs a prepared command. Streams that are set stay as they are.
func (s *Stage) Finish(cmd *exec.Cmd) Result {
	s.T.Helper()
	var out, errs bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &errs
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.T.Fatalf("%q: %v", cmd.Args, err)
	}
	return Result{cmd.Args, status(cmd.ProcessState), out.String(), errs.String()}
}

func status(p *os.ProcessState) int {
	if ws, ok := p.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -int(ws.Signal())
	}
	return p.ExitCode()
}
