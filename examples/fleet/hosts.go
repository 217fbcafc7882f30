package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

// patience is for what takes milliseconds; it bounds what hangs.
const patience = 30 * time.Second

// serve starts web servers, each of which says who it is. hosts are their names with ports, as in a list of allowed hosts.
func serve(n int) (hosts []string, end func(), err error) {
	var servers []*http.Server
	end = func() {
		for _, s := range servers {
			_ = s.Close() // of listeners that are open
		}
	}
	for range n {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			end()
			return nil, nil, err
		}
		_, port, _ := net.SplitHostPort(listener.Addr().String()) // is one
		host := net.JoinHostPort("localhost", port)
		server := &http.Server{ReadHeaderTimeout: patience,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "I am "+host) })}
		go func() { _ = server.Serve(listener) }() // until end
		hosts, servers = append(hosts, host), append(servers, server)
	}
	return hosts, end, nil
}

// fetch is the command in the sandbox: it asks each host for its front page and writes a line with what came back. A host on
// the loopback that is not allowed is a port where nobody listens, unless a program asks the proxy for it, which answers why
// not; http.ProxyFromEnvironment never does.
func fetch(w io.Writer, hosts []string) error {
	proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
	if err != nil {
		return err
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	for _, host := range hosts {
		status, body, err := get(&client, "http://"+host+"/")
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			body = ""
		} else {
			body = " " + body
		}
		if _, err := fmt.Fprintf(w, "%s %d%s\n", host, status, body); err != nil {
			return err
		}
	}
	return nil
}

// get gives the status and the body of a page.
func get(client *http.Client, page string) (status int, body string, err error) {
	answer, err := client.Get(page)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}
