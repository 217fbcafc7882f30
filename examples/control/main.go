// Command control shows how a program changes what a running command may reach: it starts a command with srt, opens a host
// for it while it runs, and closes it again (docs/cli.md, "Control channel").
//
//	go run ./examples/control bin/srt
//
// Needs curl. Nothing leaves the machine: the host is a server of the program's own on the loopback.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: control /path/to/srt")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "control:", err)
		os.Exit(1)
	}
}

// run starts a server and an agent and says on w what the agent reaches. srt is the path of the program.
func run(ctx context.Context, srt string, w io.Writer) (err error) {
	host, closeServer, err := serve()
	if err != nil {
		return err
	}
	defer closeServer()
	a, err := startAgent(ctx, srt, "http://"+host+"/")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	for _, step := range []struct {
		what   string
		hosts  []string
		status string
	}{
		{"nothing is allowed", nil, "403"},
		{"open " + host, []string{host}, "200"},
		{"close it again", []string{}, "403"},
	} {
		if step.hosts != nil {
			if err := a.allow(step.hosts...); err != nil {
				return err
			}
		}
		if err := a.expect(step.status); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Fprintf(w, "%s: the running command gets %s\n", step.what, step.status)
	}
	return nil
}

// serve starts a web server and gives its host and port, and what ends it.
func serve() (host string, end func(), err error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello\n") }),
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() { _ = server.Serve(listener) }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return "localhost:" + port, func() { _ = server.Close() }, err
}

// agent is a command in a sandbox: for each line on its standard input it makes one request and prints the status.
type agent struct {
	cmd     *exec.Cmd
	control *os.File // the writing end of the control channel
	ask     io.WriteCloser
	answers *bufio.Scanner
}

// startAgent starts the command under settings that allow no host. It ends with ctx.
func startAgent(ctx context.Context, srt, url string) (*agent, error) {
	channel, control, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer channel.Close() // srt has its own
	a := &agent{control: control}
	a.cmd = exec.CommandContext(ctx, srt, "--control-fd", "3", "-c",
		`while read -r _; do curl -s -o /dev/null -w '%{http_code}\n' --noproxy '' `+url+`; done`)
	a.cmd.ExtraFiles = []*os.File{channel} // the first of them is descriptor 3
	a.cmd.Stderr = os.Stderr
	var answers io.ReadCloser
	if a.ask, err = a.cmd.StdinPipe(); err == nil {
		answers, err = a.cmd.StdoutPipe()
	}
	if err == nil {
		err = a.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	a.answers = bufio.NewScanner(answers)
	return a, nil
}

// settings are what a line of the channel must hold. Each line replaces all settings.
type settings struct {
	Network    network    `json:"network"`
	Filesystem filesystem `json:"filesystem"`
}

type network struct {
	AllowedDomains []string `json:"allowedDomains"`
	DeniedDomains  []string `json:"deniedDomains"`
}

// filesystem has no effect on a command that runs, but must be there.
type filesystem struct {
	DenyRead   []string `json:"denyRead"`
	AllowWrite []string `json:"allowWrite"`
	DenyWrite  []string `json:"denyWrite"`
}

// allow makes these hosts, and no others, those that the running command may reach.
func (a *agent) allow(hosts ...string) error {
	none := []string{}
	return json.NewEncoder(a.control).Encode(settings{ // ends the line, too
		network{append(none, hosts...), none}, filesystem{none, none, none},
	})
}

// expect has the command make requests until one ends with a status: the channel has no answers, so what shows that a line is
// in force is its effect.
func (a *agent) expect(status string) error {
	last := ""
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := io.WriteString(a.ask, "\n"); err != nil {
			return fmt.Errorf("the command has ended: %w", err)
		}
		if !a.answers.Scan() {
			return errors.Join(errors.New("the command has ended"), a.answers.Err())
		}
		if last = a.answers.Text(); last == status {
			return nil
		}
	}
	return fmt.Errorf("the command gets %s, not %s", last, status)
}

// close ends the command, which has nothing left to read, and the channel.
func (a *agent) close() error {
	return errors.Join(a.ask.Close(), a.cmd.Wait(), a.control.Close())
}
