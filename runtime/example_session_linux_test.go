package runtime_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
)

// The hosts of a command change while it runs. What does not change in a running session is named.
func ExampleSandbox_Update() {
	ctx := context.Background()
	host, end := site("the test server")
	defer end()
	sandbox, err := runtime.New(ctx, config.Default())
	must(err)
	defer sandbox.Close()

	agent := sandbox.Shell(ctx, `while read -r line; do curl -s -o /dev/null -w "%{http_code}\n" --noproxy "" "$line"; done`)
	in, err := agent.StdinPipe()
	must(err)
	out, err := agent.StdoutPipe()
	must(err)
	must(agent.Start())
	answers := bufio.NewReader(out)
	try := func(when string) {
		fmt.Fprintln(in, host)
		status, err := answers.ReadString('\n')
		must(err)
		fmt.Print(when, ": ", status)
	}

	try("before")
	cfg := sandbox.Config() // a copy
	cfg.Network.AllowedDomains = []string{host}
	cfg.Network.ParentProxy.HTTP = "http://proxy.example.com:3128"
	notLive, err := sandbox.Update(ctx, cfg)
	must(err)
	try("after")
	fmt.Println("for the next session:", notLive)

	must(in.Close())
	must(agent.Wait())
	// Output:
	// before: 403
	// after: 200
	// for the next session: [network.parentProxy]
}

// One command may have other rules about files than the session. What counts for the whole session cannot be overridden.
func ExampleCmd_override() {
	ctx := context.Background()
	dir, remove := project()
	defer remove()
	sandbox, err := runtime.New(ctx, config.Default()) // nothing of the project can be written
	must(err)
	defer sandbox.Close()

	run := func(o *config.Override) {
		cmd := sandbox.Command(ctx, "touch", "report")
		cmd.Dir, cmd.Override = dir, o
		err := cmd.Run()
		_, there := os.Stat(filepath.Join(dir, "report"))
		fmt.Println(err, there == nil)
	}
	run(nil)
	run(&config.Override{Filesystem: &config.FilesystemOverride{AllowWrite: []config.PathEntry{{Path: "."}}}})

	// In the form of a settings file, for programs that get it as text:
	_, err = config.DecodeOverride([]byte(`{"network": {"deniedDomains": ["example.com"]}}`))
	fmt.Println(err)
	// Output:
	// exit status 1 false
	// <nil> true
	// network.deniedDomains: cannot be overridden for one command; it counts for the whole session: remove it here and change the session's settings
}

// Shutdown lets commands come to their end for as long as its context gives them. Nothing is started any more.
func ExampleSandbox_Shutdown() {
	ctx := context.Background()
	sandbox, err := runtime.New(ctx, config.Default())
	must(err)
	quick, endless := sandbox.Shell(ctx, "exit 3"), sandbox.Command(ctx, "sleep", "infinity")
	must(quick.Start())
	must(endless.Start())

	soon, cancel := context.WithTimeoutCause(ctx, time.Second/2, errors.New("the service stops"))
	defer cancel()
	fmt.Println("shutdown:", sandbox.Shutdown(soon))
	<-sandbox.Done()

	fmt.Println("quick:", quick.Wait())
	fmt.Println("endless:", endless.Wait() != nil)
	err = sandbox.Command(ctx, "true").Run()
	fmt.Println(err, errors.Is(err, runtime.ErrClosed))
	// Output:
	// shutdown: the service stops
	// quick: exit status 3
	// endless: true
	// the sandbox is closed true
}
