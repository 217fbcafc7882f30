package main

import (
	"errors"
	"io"
	"net"
	"os"
)

// proxyFiles is what is handed over by descriptor elsewhere.
type proxyFiles struct {
	listener net.Listener
	link     io.ReadWriteCloser
	lifeline *os.File
	ca       *os.File
}

// openProxyFiles refuses: programs do not inherit descriptors by number here.
func openProxyFiles(*proxyOptions) (*proxyFiles, error) {
	return nil, errors.New("srt proxy is handed its decider by an inherited descriptor, which Windows does not have; use package proxy/decider")
}
