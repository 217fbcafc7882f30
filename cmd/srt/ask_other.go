//go:build !linux

package main

import (
	"context"
	"errors"
	"os"
	"time"
)

// errNoTerminal says that --ask cannot be had here: nothing stops a command while a question stands.
var errNoTerminal = errors.New("--ask is not available on this system. Leave it out and name the hosts in network.allowedDomains.")

func openTerminal() (*os.File, error) { return nil, errNoTerminal }

// terminalDialog is never made.
type terminalDialog struct{}

func (a *app) openDialog(time.Duration, func(string, error)) (*terminalDialog, error) {
	_, err := a.terminal()
	return nil, err
}

func (*terminalDialog) attach(process) {}

func (*terminalDialog) close() {}

func (*terminalDialog) put(context.Context, target, string) (decision, error) {
	return decision{}, errNoTerminal
}
