package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/srt-sandbox/srt/test/mode"
)

const module = "github.com/srt-sandbox/srt/"

func main() {
	in := flag.String("mode", mode.Confined, "the mode to run in: nested or confined")
	run := flag.String("run", "", "only tests that match, as for go test")
	skip := flag.String("skip", ownModes, "no tests that match, as for go test")
	core := flag.Bool("core", false, "only what CI runs")
	limit := flag.String("timeout", "30m", "how long a package may take")
	log := flag.String("log", "", "a file for everything that the tests print")
	flag.Parse()
	packages := flag.Args()
	if len(packages) == 0 {
		packages = suite
	}
	if *core {
		packages, *run = corePackages, strings.Join(coreTests, "|")
	}
	ok, err := runIn(*in, *log, append([]string{"-timeout", *limit, "-run", *run, "-skip", *skip}, packages...))
	if err != nil {
		fmt.Fprintln(os.Stderr, "modes:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

// runIn has go test run with these further arguments in a mode, and prints what is not as it should be.
func runIn(in, log string, args []string) (bool, error) {
	cmd := exec.Command("go", append([]string{"test", "-json", "-count=1"}, args...)...)
	cmd.Env = append(os.Environ(), mode.Variable+"="+in)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	var copied *os.File
	if log != "" {
		if copied, err = os.Create(log); err != nil {
			return false, err
		}
		defer copied.Close()
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	v := newVerdicts()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return false, fmt.Errorf("go test -json printed %q: %w", lines.Text(), err)
		}
		v.add(e)
		if copied != nil && e.Action == "output" {
			_, _ = copied.WriteString(e.Output)
		}
	}
	if err := lines.Err(); err != nil {
		return false, err
	}
	exit := cmd.Wait()
	if exit != nil && len(v.failures()) == 0 {
		return false, fmt.Errorf("%q: %w", cmd.Args, exit)
	}
	j := judge(in, v, excuses[in])
	j.print(in, v)
	return j.ok(), nil
}

// print tells what is wrong with a run, and how many tests it was.
func (j judged) print(in string, v *verdicts) {
	for _, n := range j.unexcused {
		fmt.Printf("--- FAIL: %s %s\n%s", n.pkg, n.test, strings.Join(v.output[n], ""))
	}
	for _, e := range j.idle {
		fmt.Printf("--- FAIL: %s %s: the excuse %s is not needed: it passes\n", e.pkg, e.test, e.row)
	}
	for _, e := range j.baseless {
		fmt.Printf("--- FAIL: %s %s: docs/modes.md does not say of %s that it is different in mode %s\n", e.pkg, e.test, e.row, in)
	}
	count := map[string]int{}
	for n, outcome := range v.outcome {
		if n.test != "" {
			count[outcome]++
		}
	}
	fmt.Printf("mode %s: %d tests passed, %d skipped, %d excused, %d failed\n", in, count["pass"], count["skip"], j.excused, len(j.unexcused))
}
