package main

import (
	"fmt"
	"runtime/debug"
)

// version is set by the linker (-ldflags "-X main.version=..."). Without it the module's own build information speaks.
var version string

func versionString() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

const helpText = `Usage:
  srt exec [options] -- command [argument...]   run a command, no shell involved
  srt [options] command [argument...]           run a command through bash (or /bin/sh)
  srt [options] -c 'shell text'                 run shell text
  srt explain [--json] [options] [-- command]   print what a run would allow; run nothing
  srt explain why --read PATH ...               say which rule decides about one thing: --read, --write,
                                                --remove PATH, --connect HOST[:PORT], --unix PATH;
                                                status 3 when one is denied
  srt check [--json] [-s path]                  say how well commands are confined here, and what would better it;
                                                status 0 full, 10 nested, 11 confined, 1 not at all
  srt proxy --help                              a proxy that asks another process about each request

Options, before the command:
  -c <string>             run this string with the shell; further words are ignored
  -d, --debug             say on standard error what srt does (also: SRT_DEBUG set to anything)
  -s, --settings <path>   settings file (default: .srt-settings.json in the home directory)
      --control-fd <n>    read new settings for the running command from this descriptor
      --ask               ask on the terminal about hosts that the settings do not decide
      --ask-timeout <t>   how long a question stands, then the host is refused (default: 60s)
      --violations <file> write what is refused as JSON lines: to a file, - (standard output) or fd:<n>
  -q, --quiet             no summary of what was refused after a command that failed
  -h, --help              print this text
  -V, --version           print the version

Exit status: the command's own; 128+n when signal n killed it; 127 when it was not found, 126 when it could not be
run; 1 when srt itself failed, with a line on standard error that starts with "Error:".

The settings file is described in docs/settings.md, this command line in docs/cli.md.
`

// usage reports a mistake on the command line in one line (CLI-5).
func (a *app) usage(err error) int {
	fmt.Fprintf(a.stderr, "error: %v\n", err)
	return exitFailure
}

// exitFailure is the status of srt's own failures (CLI-13).
const exitFailure = 1

// fail reports a failure of srt itself (CLI-13).
func (a *app) fail(err error) int {
	fmt.Fprintf(a.stderr, "Error: %v\n", err)
	return exitFailure
}
