// Command decider shows a host that hands requests of a workload elsewhere to srt proxy, and decides about each of them
// (docs/cli.md, "proxy"). It starts srt proxy with a link of two pipes and a lifeline, and answers its questions.
//
//	go run ./examples/decider -srt bin/srt -listen 127.0.0.1:8080 -allow example.com,127.0.0.1 -forbid secret
//	curl -x http://127.0.0.1:8080 http://example.com/
//
// With -ca a PEM file that holds a certificate authority and its key, tunnels are inspected too, and -credential
// api.example.com=API_TOKEN puts the value of a variable of this program into requests to that host. The workload never has
// it. A real host would listen on a socket of its own making (--listen-fd) that only the workload can reach.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

func main() {
	var h host
	flag.StringVar(&h.srt, "srt", "srt", "`path` of srt")
	flag.StringVar(&h.listen, "listen", "127.0.0.1:0", "`address` to listen on")
	flag.StringVar(&h.ca, "ca", "", "PEM `file` with a certificate authority and its key")
	allow := flag.String("allow", "", "`hosts` that may be reached, with commas between them")
	flag.StringVar(&h.policy.forbid, "forbid", "", "`text` that no request body may hold")
	credential := flag.String("credential", "", "`host=VARIABLE`: send the variable's value to that host, in tunnels")
	flag.Parse()
	if *allow != "" {
		h.policy.allow = strings.Split(*allow, ",")
	}
	name, variable, _ := strings.Cut(*credential, "=")
	h.policy.credentialHost, h.policy.credential = name, os.Getenv(variable)
	if *credential != "" && h.policy.credential == "" {
		fmt.Fprintf(os.Stderr, "decider: -credential %s: it is host=VARIABLE, and the variable has to be set\n", *credential)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := h.run(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "decider:", err)
		os.Exit(1)
	}
}

// host starts srt proxy and decides for it.
type host struct {
	srt, listen, ca string
	policy          policy
}

// run serves until the context ends; what srt proxy reports goes to report.
func (h *host) run(ctx context.Context, report io.Writer) (err error) {
	// Each pipe has an end for the child and one that stays. The child's numbers are 3, 4, 5 and 6 in the order of ExtraFiles.
	questionsIn, questionsOut, err := os.Pipe()
	if err != nil {
		return err
	}
	verdictsIn, verdictsOut, err := os.Pipe()
	if err != nil {
		return err
	}
	lifelineIn, lifeline, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = questionsIn.Close() }()
	cmd := exec.Command(h.srt, "proxy", "--listen", h.listen, "--decider-in", "3", "--decider-out", "4", "--lifeline-fd", "5")
	cmd.ExtraFiles = []*os.File{verdictsIn, questionsOut, lifelineIn}
	cmd.Stderr = report
	if h.ca != "" {
		file, err := os.Open(h.ca)
		if err != nil {
			return err
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
		cmd.Args = append(cmd.Args, "--ca-fd", "6")
	}
	err = cmd.Start()
	for _, f := range cmd.ExtraFiles { // only the child has them now, so that its end is seen
		_ = f.Close()
	}
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = lifeline.Close() })
	defer stop()
	err = h.policy.decide(questionsIn, verdictsOut)
	_ = verdictsOut.Close()
	_ = lifeline.Close()
	return errors.Join(err, cmd.Wait())
}
