package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
)

// must ends an example that cannot go on. A program would return the error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// project is a new directory, for the commands of an example to work in, and what removes it.
func project() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "project")
	must(err)
	dir, err = filepath.EvalSymlinks(dir)
	must(err)
	return dir, func() { must(os.RemoveAll(dir)) }
}

// site is a web server on the loopback that says its name, host its name and port in the settings.
func site(name string) (host string, end func()) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "I am", name) }))
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	must(err)
	return net.JoinHostPort("localhost", port), server.Close
}

// Example runs one command. It may write in its working directory, but for one file, and reach nothing.
func Example() {
	ctx := context.Background()
	dir, remove := project()
	defer remove()
	must(os.WriteFile(filepath.Join(dir, "Makefile"), []byte("all:\n"), 0o600))

	cfg, err := config.Decode([]byte(`{
		"network":    { "allowedDomains": [], "deniedDomains": [] },
		"filesystem": { "denyRead": [], "allowWrite": ["."], "denyWrite": ["Makefile"] }
	}`))
	must(err)
	sandbox, err := runtime.New(ctx, cfg)
	must(err)
	defer sandbox.Close()

	cmd := sandbox.Command(ctx, "cp", "Makefile", "a copy; $(no shell)")
	cmd.Dir = dir
	must(cmd.Run())

	cmd = sandbox.Shell(ctx, "ls; echo x >>Makefile")
	cmd.Dir = dir
	out, err := cmd.Output()
	fmt.Printf("%s", out)
	if failed, ok := errors.AsType[*runtime.ExitError](err); ok {
		fmt.Println("it failed:", failed.ExitCode() != 0)
	}
	// Output:
	// Makefile
	// a copy; $(no shell)
	// it failed: true
}

// Many commands run at once in one session, and each reaches its own hosts and no others.
func ExampleCmd_manyAtOnce() {
	ctx := context.Background()
	one, endOne := site("one")
	defer endOne()
	two, endTwo := site("two")
	defer endTwo()

	sandbox, err := runtime.New(ctx, config.Default()) // no host is allowed to everyone
	must(err)
	defer sandbox.Close()

	var commands sync.WaitGroup
	said := make([]string, 20)
	for i := range said {
		commands.Go(func() {
			own, other := one, two
			if i%2 == 1 {
				own, other = two, one
			}
			cmd := sandbox.Shell(ctx, `curl -sS --noproxy "" "$OWN"; curl -sS -o /dev/null -w "%{http_code}" --noproxy "" "$OTHER"`)
			cmd.Env = append(os.Environ(), "OWN="+own, "OTHER="+other)
			cmd.AllowDomains = []string{own}
			out, err := cmd.Output()
			must(err)
			said[i] = string(out)
		})
	}
	commands.Wait()

	count := map[string]int{}
	for _, s := range said {
		count[s]++
	}
	for s, n := range count {
		fmt.Printf("%d commands: %q\n", n, s)
	}
	// Unordered output:
	// 10 commands: "I am one\n403"
	// 10 commands: "I am two\n403"
}

// A person, or a program in their place, is asked about hosts that the settings leave open.
func ExampleWithAsk() {
	ctx := context.Background()
	host, end := site("the test server")
	defer end()
	_, port, err := net.SplitHostPort(host)
	must(err)

	ask := func(_ context.Context, d runtime.Destination) (runtime.Answer, error) {
		fmt.Printf("may %q connect to %s?\n", d.CleanCommand(40), d.Canonical)
		if d.Canonical == "localhost" && fmt.Sprint(d.Port) == port {
			return runtime.Answer{Allow: true}, nil
		}
		return runtime.Answer{Reason: "not in working hours"}, nil // and the zero Answer refuses, too
	}
	sandbox, err := runtime.New(ctx, config.Default(), runtime.WithAsk(ask, runtime.AskTimeout(time.Minute)))
	must(err)
	defer sandbox.Close()

	for _, to := range []string{host, "games.example.com"} {
		cmd := sandbox.Command(ctx, "curl", "-s", "-S", "-f", "--noproxy", "", to)
		cmd.Text = "fetch" // what the command is called, for people
		out, _ := cmd.Output()
		fmt.Printf("%s", out)
		for v := range cmd.Violations() {
			fmt.Println(v.Reason)
		}
	}
	// Output:
	// may "fetch" connect to localhost?
	// I am the test server
	// may "fetch" connect to games.example.com?
	// not in working hours
}
