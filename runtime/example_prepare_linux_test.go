package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
)

// A caller that has its own way of spawning prepares a command and spawns what stands for it. Here that is package os/exec; a
// library for pseudo-terminals takes the same *exec.Cmd.
func ExampleCmd_Prepare() {
	ctx := context.Background()
	sandbox, err := runtime.New(ctx, config.Default())
	must(err)
	defer sandbox.Close()

	cmd := sandbox.Command(ctx, "/bin/sh", "-c", "tr a-z A-Z; touch not-here 2>/dev/null || exit 3")
	cmd.Dir = "/"
	launch, err := cmd.Prepare()
	must(err)
	defer launch.Release()

	process := &exec.Cmd{Path: launch.Path, Args: launch.Args, Env: launch.Env, Dir: launch.Dir, ExtraFiles: launch.Files}
	process.Stdin = strings.NewReader("any process that you can spawn\n")
	out, err := process.Output()
	fmt.Printf("%s", out)
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		fmt.Println("status", failed.ExitCode())
	}
	// Output:
	// ANY PROCESS THAT YOU CAN SPAWN
	// status 3
}
