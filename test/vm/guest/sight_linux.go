package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/srt-sandbox/srt/test/vm/internal/record"
)

// sights looks as every account.
func (g *guest) sights(who []account, variant string) error {
	for _, a := range who {
		s, err := look(a)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", variant, a.name, err)
		}
		s.Variant, s.Account = variant, a.name
		if err := g.out.Encode(record.Line{Kind: record.KindSight, Sight: &s}); err != nil {
			return err
		}
	}
	return nil
}

// look asks srt what it makes of this system, and has it run something.
func look(a account) (record.Sight, error) {
	var s record.Sight
	text, exit, err := run(a.command(srtBinary, "check", "--json"), false)
	if err != nil {
		return s, err
	}
	s.CheckExit = exit
	if err := json.Unmarshal([]byte(text), &s.Check); err != nil {
		return s, fmt.Errorf("srt check --json ended with %d and printed %q: %w", exit, text, err)
	}
	if s.Exec, s.ExecExit, err = run(a.command(srtBinary, "exec", "--", "echo", "works"), true); err != nil {
		return s, err
	}
	s.Weaker, s.WeakerExit, err = run(a.command(srtBinary, "--settings", filepath.Join(disk, record.WeakerFile), "exec", "--", "echo", "works"), true)
	return s, err
}

// run gives what a command printed on standard output, or on both streams, and its exit status.
func run(cmd *exec.Cmd, both bool) (string, int, error) {
	output := cmd.Output
	if both {
		output = cmd.CombinedOutput
	}
	text, err := output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		err = nil
	}
	if err != nil {
		return "", 0, err
	}
	return strings.TrimSpace(string(text)), cmd.ProcessState.ExitCode(), nil
}

// variant changes one sysctl, looks, and changes it back. The text is "name=sysctl=value".
func (g *guest) variant(who []account, text string) error {
	name, rest, _ := strings.Cut(text, "=")
	sysctl, value, ok := strings.Cut(rest, "=")
	if !ok {
		return fmt.Errorf("variant %q: want name=sysctl=value", text)
	}
	file := filepath.Join("/proc/sys", strings.ReplaceAll(sysctl, ".", "/"))
	before, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return g.out.Encode(record.Line{Kind: record.KindSight, Sight: &record.Sight{Variant: name, Unset: true}})
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(value), 0); err != nil {
		return fmt.Errorf("variant %s: %w", name, err)
	}
	if err := g.sights(who, name); err != nil {
		return err
	}
	if err := os.WriteFile(file, before, 0); err != nil {
		return fmt.Errorf("after variant %s: %w", name, err)
	}
	return nil
}
