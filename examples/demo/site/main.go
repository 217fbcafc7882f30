// Command site is both ends of the demonstration's network: a web server on the loopback interface, and a client for
// machines without curl.
//
//	site serve FILE   serve on a free port of 127.0.0.1 and write the port to FILE
//	site get URL      print the answer of URL, asked for through the proxy in HTTP_PROXY
//	site dial ADDR    connect to host:port directly, as a program does that knows nothing of proxies
//	site secure FILE  the same as serve over HTTPS, for clients with the token in API_TOKEN; the certificate goes to FILE.pem
//	site login URL    print the answer of URL to the token in API_TOKEN
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

const timeout = 10 * time.Second

func main() {
	commands := map[string]func(string) error{"serve": serve, "get": get, "dial": dial, "secure": secure, "login": login}
	if len(os.Args) != 3 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: site serve FILE | get URL | dial HOST:PORT | secure FILE | login URL")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// listen listens on a free port of 127.0.0.1 and writes the port to a file.
func listen(file string) (net.Listener, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	// Written beside and renamed, so that whoever waits for the file never reads half of it.
	if err := os.WriteFile(file+".new", []byte(port), 0o600); err != nil {
		return nil, err
	}
	return listener, os.Rename(file+".new", file)
}

func serve(file string) error {
	listener, err := listen(file)
	if err != nil {
		return err
	}
	server := &http.Server{
		ReadHeaderTimeout: timeout,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "hello from the test server\n")
		}),
	}
	return server.Serve(listener)
}

// get does not use http.ProxyFromEnvironment, which never asks a proxy for localhost.
func get(address string) error {
	proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	return show(client.Get(address))
}

// show prints an answer; one that is no success is an error.
func show(answer *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", answer.Request.URL, answer.Status)
	}
	return nil
}

func dial(address string) error {
	conn, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return err
	}
	return conn.Close()
}
