package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A test runs its own binary again as one of these programs, named by helperVariable. Its arguments are in the variable
// too, as ssh passes a ProxyCommand to a shell.
const helperVariable = "SRT_PROXY_TEST_HELPER"

var helpers = map[string]func(args []string) error{
	"socks-without-authentication": socksPipe,
	"ssh-connect": func(args []string) error {
		return SSHConnect(context.Background(), os.Stdin, os.Stdout, args[0], args[1])
	},
	"idle-ends": idleEnds,
}

// TestHelper is not a test: it is the entry of the programs above.
func TestHelper(t *testing.T) {
	args := strings.Fields(os.Getenv(helperVariable))
	if len(args) == 0 {
		return
	}
	if err := helpers[args[0]](args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// helperCommand is a program of this file as a shell command.
func helperCommand(t *testing.T, args string) string {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("env %s='%s' %s -test.run=^TestHelper$", helperVariable, args, self)
}

// socksPipe is a SOCKS client that offers no authentication, as nc -X 5 does: proxy address, host, port.
func socksPipe(args []string) error {
	port, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	c, err := net.Dial("tcp", args[0])
	if err != nil {
		return err
	}
	if _, err := io.WriteString(c, "\x05\x01\x00"+socksName(1, args[1], port)); err != nil {
		return err
	}
	answer := make([]byte, 12)
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	if got := string(answer); got != "\x05\x00"+socksAnswer(0) {
		return fmt.Errorf("the proxy says %q", got)
	}
	go func() { _, _ = io.Copy(c, os.Stdin) }()
	_, err = io.Copy(os.Stdout, c)
	return err
}

// idleEnds opens tunnels through a proxy (address, number) to a server of its own, says so, and keeps them until its input
// ends. It has descriptors of its own for both ends.
func idleEnds(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ends := make([]net.Conn, 0, 2*n)
	for range n {
		c, err := net.Dial("tcp", args[0])
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\n%s\r\n", l.Addr(), auth); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, make([]byte, len(established))); err != nil {
			return err
		}
		server, err := l.Accept()
		if err != nil {
			return err
		}
		ends = append(ends, c, server)
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	fmt.Fprintln(io.Discard, len(ends))
	return err
}
