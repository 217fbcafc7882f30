package main

import (
	"fmt"
	"runtime"
)

// notInThisVersion refuses a subcommand whose chapter this version does not implement.
func (a *app) notInThisVersion(inv *invocation) int {
	return a.fail(fmt.Errorf("srt %s is not available in this version of srt; use srt exec to run a command",
		inv.subcommand))
}

// windowsOnly refuses the set-up commands of CLI-40 to CLI-42: elsewhere because there is nothing to set up, on Windows
// because this version has no Windows sandbox.
func (a *app) windowsOnly(inv *invocation) int {
	if runtime.GOOS == "windows" {
		return a.notInThisVersion(inv)
	}
	return a.fail(fmt.Errorf("srt %s sets up Windows only; %s needs no set-up", inv.subcommand, runtime.GOOS))
}
