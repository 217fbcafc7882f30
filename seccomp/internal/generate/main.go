//go:build generate

// Command generate writes the BPF of every filter for every architecture: one file each, an array of struct
// sock_filter in little-endian order. It needs cgo and libseccomp 2.5 or newer.
//
// A file is a prologue written by this command (see prologue.go) and behind it what libseccomp made of the rules.
// Output depends only on the rules and the version of libseccomp, not on the machine.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	libseccomp "github.com/seccomp/libseccomp-golang"

	"github.com/srt-sandbox/srt/seccomp/internal/rules"
)

func main() {
	out := flag.String("o", "filters", "folder to write to")
	version := flag.Bool("libseccomp-version", false, "print the version of libseccomp and write nothing")
	flag.Parse()
	if *version {
		major, minor, micro := libseccomp.GetLibraryVersion()
		if _, err := fmt.Fprintf(os.Stdout, "%d.%d.%d\n", major, minor, micro); err != nil {
			os.Exit(1)
		}
		return
	}
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	// The library offers what the running kernel has. The filters are for other kernels, so ask for what they need:
	// level 3 is SECCOMP_RET_KILL_PROCESS, level 6 SECCOMP_RET_USER_NOTIF.
	if err := libseccomp.SetAPI(6); err != nil {
		return fmt.Errorf("set libseccomp's API level: %w", err)
	}
	for _, f := range rules.Filters() {
		for _, a := range rules.Arches() {
			program, err := compile(f, a)
			if err != nil {
				return fmt.Errorf("filter %s for %s: %w", f.Name, a, err)
			}
			name := filepath.Join(out, f.Name+"_"+string(a)+".bpf")
			if err := os.WriteFile(name, program, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile returns the whole program of f for a.
func compile(f rules.Filter, a rules.Arch) ([]byte, error) {
	body, err := libseccompProgram(f, a)
	if err != nil {
		return nil, err
	}
	head, err := prologue(f, a)
	if err != nil {
		return nil, err
	}
	return append(head, body...), nil
}

// libseccompProgram is the part of f that libseccomp can express.
func libseccompProgram(f rules.Filter, a rules.Arch) ([]byte, error) {
	filter, err := newFilter(a)
	if err != nil {
		return nil, err
	}
	defer filter.Release()
	for _, r := range f.Rules {
		if r.Number != 0 || r.Only != "" && r.Only != a {
			continue
		}
		if err := addRule(filter, r); err != nil {
			return nil, fmt.Errorf("rule for %s: %w", r.Call, err)
		}
	}
	return export(filter)
}

// newFilter returns a filter for a alone that allows everything, and kills the process on a system call of any other
// architecture (NET-82). For x86-64 libseccomp counts the x32 numbers as another architecture.
func newFilter(a rules.Arch) (*libseccomp.ScmpFilter, error) {
	filter, err := libseccomp.NewFilter(libseccomp.ActAllow)
	if err != nil {
		return nil, err
	}
	native, err := libseccomp.GetNativeArch()
	if err != nil {
		return nil, err
	}
	want := map[rules.Arch]libseccomp.ScmpArch{rules.AMD64: libseccomp.ArchAMD64, rules.ARM64: libseccomp.ArchARM64}[a]
	if want != native {
		if err := filter.AddArch(want); err != nil {
			return nil, err
		}
		if err := filter.RemoveArch(native); err != nil {
			return nil, err
		}
	}
	if err := filter.SetBadArchAction(libseccomp.ActKillProcess); err != nil {
		return nil, err
	}
	// A tree of comparisons in place of a list: at load time the kernel walks it once for every number.
	if err := filter.SetOptimize(2); err != nil {
		return nil, err
	}
	return filter, nil
}

func addRule(filter *libseccomp.ScmpFilter, r rules.Rule) error {
	call, err := libseccomp.GetSyscallFromName(r.Call)
	if err != nil {
		return err
	}
	action := libseccomp.ActErrno.SetReturnCode(int16(r.Errno))
	if r.Notify {
		action = libseccomp.ActNotify
	}
	if len(r.When) == 0 {
		return filter.AddRuleExact(call, action)
	}
	var conds []libseccomp.ScmpCondition
	for _, c := range r.When {
		cond, err := libseccomp.MakeCondition(uint(c.Index), libseccomp.CompareMaskedEqual, c.Mask, c.Value)
		if err != nil {
			return err
		}
		conds = append(conds, cond)
	}
	return filter.AddRuleConditionalExact(call, action, conds)
}

// export returns the filter as raw BPF. libseccomp writes it in the byte order of this machine; both architectures are
// little-endian, and so is every machine that generates.
func export(filter *libseccomp.ScmpFilter) ([]byte, error) {
	file, err := os.CreateTemp("", "srt-seccomp-*.bpf")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := filter.ExportBPF(file); err != nil {
		return nil, err
	}
	return os.ReadFile(file.Name())
}
