package runtime

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/runtime/config"
)

// checkSandbox makes the namespaces of a sandbox, in which no program is run, and takes them away. It is the only way to
// know: what may refuse them are sysctls, security modules, filters and limits, each for reasons of its own.
func checkSandbox() error {
	h, err := readIdentity()
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	program, err := ns.NewProgram()
	if err != nil {
		return err
	}
	prepared, err := ns.Prepare(h.namespaces(null, null, null, ns.SessionNew), program)
	if err != nil {
		return errors.Join(err, program.Release())
	}
	return prepared.Close()
}

// namespaces are what a sandbox is made with.
func (h *host) namespaces(stdin, stdout, stderr *os.File, session ns.Session) *ns.Config {
	kinds := ns.Full
	if !h.cgroupNS {
		kinds &^= syscall.CLONE_NEWCGROUP
	}
	return &ns.Config{Namespaces: kinds, UIDs: h.uids, GIDs: h.gids, DenySetgroups: !h.mapsAll, Session: session,
		Stdin: stdin, Stdout: stdout, Stderr: stderr}
}

// check adds what the features say: the mode, and what commands have less of. Without a configuration nothing is held against the
// settings that a mode depends on.
func (r *Report) check(cfg *config.Config) {
	choice, err := askMode(cfg == nil || cfg.EnableWeakerNestedSandbox)
	if _, ok := errors.AsType[*ModeError](err); err != nil && !ok {
		return // SRT_WITHOUT names no features: the platform's error says so
	}
	r.Mode, r.Reasons, r.Features = choice.possible, append(r.Reasons, choice.reasons...), features()
	if !choice.remedy.IsZero() {
		r.Remedy = &choice.remedy
	}
	switch {
	case len(r.Errors) > 0:
		return
	case err != nil:
		r.fail(err)
		return
	case choice.mode == ModeConfined && cfg == nil:
		r.Warnings = append(r.Warnings, "commands are started here only under settings with enableWeakerNestedSandbox: true, in mode confined, which "+
			"does not hide or hold all that the others do: docs/modes.md")
	case choice.mode != ModeConfined:
		r.checkNamespaces(cfg, choice.mode)
	}
	if len(r.Errors) == 0 {
		r.Warnings = append(r.Warnings, missing(choice.mode)...)
	}
}

// checkNamespaces makes the namespaces of a sandbox, all at once, and asks for what mode nested needs beside them.
func (r *Report) checkNamespaces(cfg *config.Config, mode Mode) {
	if err := checkSandbox(); err != nil {
		r.Mode = ModeNone
		r.fail(err)
		return
	}
	if mode != ModeNested || cfg != nil && cfg.EnableWeakerNestedSandbox {
		return
	}
	if err := brokerAvailable(); err != nil {
		unjudged := &UnjudgedProcessesError{err}
		if cfg != nil {
			r.fail(unjudged)
			return
		}
		r.Warnings = append(r.Warnings, "commands are started here only under settings with enableWeakerNestedSandbox: true: "+unjudged.Error())
	}
}

// missing is what commands have less of where system calls cannot be put to srt, or not all of them.
func missing(mode Mode) []string {
	if err := brokerAvailable(); err != nil {
		return []string{fmt.Sprintf("system calls cannot be put to srt here (%v): programs that ignore the proxy variables reach nothing, Unix "+
			"sockets are refused as a whole, and rules about names that do not exist are held by placeholder files", err)}
	}
	if err := noCapture(); err != nil && mode != ModeConfined {
		return []string{fmt.Sprintf("connections of programs that ignore the proxy variables cannot be captured here (%v): they reach nothing, and Unix "+
			"sockets are refused as a whole", err)}
	}
	return nil
}
