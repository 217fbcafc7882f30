// Command awsclient sends AWS requests of all the spellings that HTTP allows through the proxy of a sandbox. Run inside, it
// has a fake key; its signatures are of no account, since srt makes others. It fails unless every answer says that the server
// has found the signature right.
//
//	awsclient <host:port> random <count> <seed>   requests made up by a generator
//	awsclient <host:port> put <bytes> [unsigned]  one upload; prints the status and, of a refusal, the text
package main

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "awsclient:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("want a host with its port, what to do, and how much")
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	c := &client{host: args[0]}
	defer c.close()
	if args[1] == "put" {
		return c.put(n, len(args) > 3)
	}
	seed, err := strconv.ParseUint(args[3], 10, 64)
	if err != nil {
		return err
	}
	g := generator{random: rand.New(rand.NewPCG(seed, seed)), host: c.host}
	wrong := 0
	for i := range n {
		r := g.request()
		status, text, verified, err := c.send(r)
		if err != nil {
			return fmt.Errorf("request %d: %w\n%.2000q", i, err, r.String())
		}
		if !verified {
			wrong++
			fmt.Printf("request %d: %d %.200q\n%.2000q\n", i, status, text, r.String())
		}
	}
	fmt.Printf("%d of %d are wrong\n", wrong, n)
	return nil
}

// put uploads so many bytes, and says what the answer is.
func (c *client) put(n int, unsigned bool) error {
	g := generator{random: rand.New(rand.NewPCG(1, 1)), host: c.host}
	r := g.upload(n, unsigned)
	status, text, verified, err := c.send(r)
	if err != nil {
		return err
	}
	fmt.Println(status, verified, text)
	return nil
}

// client keeps one connection through the proxy to a server.
type client struct {
	host string
	conn net.Conn
	in   *bufio.Reader
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// dial asks the proxy of the environment for a tunnel, and verifies what is at its end.
func (c *client) dial() error {
	proxy, err := url.Parse(os.Getenv("HTTPS_PROXY"))
	if err != nil {
		return err
	}
	raw, err := net.Dial("tcp", proxy.Host)
	if err != nil {
		return err
	}
	password, _ := proxy.User.Password()
	auth := base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
	fmt.Fprintf(raw, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nProxy-Authorization: Basic %s\r\n\r\n", c.host, auth)
	in := bufio.NewReader(raw)
	answer, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || in.Buffered() > 0 {
		return fmt.Errorf("CONNECT: %s", answer.Status)
	}
	name, _, err := net.SplitHostPort(c.host)
	if err != nil {
		return err
	}
	tunnel := tls.Client(raw, &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12})
	if err := tunnel.Handshake(); err != nil {
		return err
	}
	c.conn, c.in = tunnel, bufio.NewReader(tunnel)
	return nil
}

// send sends a request and reads its answer to the end.
func (c *client) send(r *request) (status int, text string, verified bool, err error) {
	if c.conn == nil {
		if err := c.dial(); err != nil {
			return 0, "", false, err
		}
	}
	sent := make(chan error, 1) // an answer may come before the end
	go func(conn net.Conn) {
		_, err := conn.Write(r.bytes())
		sent <- err
	}(c.conn)
	answer, err := http.ReadResponse(c.in, &http.Request{Method: r.method})
	if err != nil {
		return 0, "", false, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if answer.Close {
		c.close()
	} else if failed := <-sent; failed != nil {
		return 0, "", false, failed
	}
	return answer.StatusCode, string(body), answer.Header.Get("Stand-Verified") == "yes", err
}
