package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// client reaches a server as the environment says: through HTTP_PROXY if it is set, else directly.
type client struct {
	target string   // host:port
	proxy  *url.URL // nil: direct
	hop    string   // host:port that is dialled
}

// newClient is for target. With way "direct" it ignores HTTP_PROXY, with "proxy" it obeys.
func newClient(target, way string) (*client, error) {
	c := &client{target: target, hop: target}
	text := os.Getenv("HTTP_PROXY")
	if way == "direct" || text == "" {
		return c, nil
	}
	var err error
	if c.proxy, err = url.Parse(text); err != nil {
		return nil, err
	}
	// Looked up once, so that what is measured is the proxy and not the resolver.
	addrs, err := net.LookupHost(c.proxy.Hostname())
	if err != nil {
		return nil, err
	}
	c.hop = net.JoinHostPort(addrs[0], c.proxy.Port())
	return c, nil
}

// dial opens a connection to the target and asks for ask.
func (c *client) dial(ask byte) (*net.TCPConn, error) {
	conn, err := net.DialTimeout("tcp", c.hop, 10*time.Second)
	if err != nil {
		return nil, err
	}
	tcp := conn.(*net.TCPConn)
	if c.proxy != nil {
		if err := c.connect(tcp); err != nil {
			return nil, errors.Join(err, tcp.Close())
		}
	}
	if _, err := tcp.Write([]byte{ask}); err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	return tcp, nil
}

// connect asks the proxy for a tunnel. The server never speaks first, so nothing can follow the answer's head.
func (c *client) connect(conn net.Conn) error {
	auth := ""
	if u := c.proxy.User; u != nil {
		password, _ := u.Password()
		auth = "Proxy-Authorization: Basic " +
			base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)) + "\r\n"
	}
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", c.target, c.target, auth); err != nil {
		return err
	}
	head := bufio.NewReader(conn)
	resp, err := http.ReadResponse(head, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("proxy: %s", resp.Status)
	}
	if head.Buffered() != 0 {
		return errors.New("proxy: bytes behind the answer's head")
	}
	return nil
}

// transferMode: DIRECTION TUNNELS SECONDS TARGET WAY. Prints MB/s of all tunnels together, and GB.
func transferMode(args []string) error {
	n, err1 := strconv.Atoi(args[1])
	seconds, err2 := strconv.ParseFloat(args[2], 64)
	c, err3 := newClient(args[3], args[4])
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	move := c.down
	if args[0] == "up" {
		move = c.up
	}
	var total atomic.Int64
	start := time.Now()
	until := start.Add(time.Duration(seconds * float64(time.Second)))
	err := parallel(n, func() error {
		moved, err := move(until)
		total.Add(moved)
		return err
	})
	took := time.Since(start)
	fmt.Println(float64(total.Load())/1e6/took.Seconds(), float64(total.Load())/1e9)
	return err
}

func (c *client) down(until time.Time) (int64, error) {
	conn, err := c.dial(askDown)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	b := make([]byte, chunk)
	var sum int64
	for time.Now().Before(until) {
		n, err := conn.Read(b)
		sum += int64(n)
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

func (c *client) up(until time.Time) (int64, error) {
	conn, err := c.dial(askUp)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	b := make([]byte, chunk)
	for time.Now().Before(until) {
		if _, err := conn.Write(b); err != nil {
			return 0, err
		}
	}
	if err := conn.CloseWrite(); err != nil {
		return 0, err
	}
	var got [8]byte
	if _, err := io.ReadFull(conn, got[:]); err != nil {
		return 0, fmt.Errorf("answer after half-close: %w", err)
	}
	return int64(binary.BigEndian.Uint64(got[:])), nil
}

// rateMode: KIND WORKERS SECONDS TARGET WAY. Prints how many a second all workers finish together, and how many it were.
func rateMode(args []string) error {
	workers, err1 := strconv.Atoi(args[1])
	seconds, err2 := strconv.ParseFloat(args[2], 64)
	c, err3 := newClient(args[3], args[4])
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	once := c.once(args[0])
	var count atomic.Int64
	start := time.Now()
	until := start.Add(time.Duration(seconds * float64(time.Second)))
	err := parallel(workers, func() error {
		for time.Now().Before(until) {
			if err := once(); err != nil {
				return err
			}
			count.Add(1)
		}
		return nil
	})
	fmt.Println(float64(count.Load())/time.Since(start).Seconds(), count.Load())
	return err
}

// latencyMode: KIND COUNT TARGET WAY. Prints the median in microseconds.
func latencyMode(args []string) error {
	count, err1 := strconv.Atoi(args[1])
	c, err2 := newClient(args[2], args[3])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	once := c.once(args[0])
	var took []float64
	for i := range count + count/10 {
		start := time.Now()
		if err := once(); err != nil {
			return err
		}
		if i >= count/10 { // the first tenth warms up
			took = append(took, float64(time.Since(start).Nanoseconds())/1e3)
		}
	}
	fmt.Println(median(took))
	return nil
}

// once returns one exchange of a kind: a byte over a new tunnel that the server then closes, a byte over an open one, a GET.
func (c *client) once(kind string) func() error {
	var b [1]byte
	switch kind {
	case "connect":
		return func() error {
			conn, err := c.dial(askOnce)
			if err != nil {
				return err
			}
			defer conn.Close()
			one := make([]byte, 1)
			if err := pingPong(conn, one); err != nil {
				return err
			}
			if n, err := conn.Read(one); n != 0 || !errors.Is(err, io.EOF) {
				return fmt.Errorf("want the server's close, got %d bytes, %w", n, err)
			}
			return nil
		}
	case "tunnel":
		conn, err := c.dial(askEcho)
		if err != nil {
			return func() error { return err }
		}
		return func() error { return pingPong(conn, b[:]) }
	case "tls-get", "tls-new":
		return c.tlsOnce(kind)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64, Proxy: http.ProxyURL(c.proxy),
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, c.hop)
		}}
	if c.proxy == nil {
		transport.Proxy = nil
	}
	return func() error { return get(transport, "http://"+c.target+"/") }
}

func pingPong(conn net.Conn, b []byte) error {
	if _, err := conn.Write(b); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, b)
	return err
}

func get(transport *http.Transport, address string) error {
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

// parallel runs n copies of work and returns the first error.
func parallel(n int, work func() error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = work() })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// idleMode: TUNNELS TARGET WAY. Opens that many tunnels, says "ready", and holds them until standard input ends. With way
// "tls" they are connections over TLS that have had a response, with "tls-busy" they have begun to get one.
func idleMode(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	var open []net.Conn
	if args[2] == "tls" || args[2] == "tls-busy" {
		c, err := newClient(args[1], args[2])
		if err != nil {
			return err
		}
		if err := c.holdTLS(n, args[2] == "tls-busy"); err != nil {
			return err
		}
		n = 0
	}
	for range n {
		c, err := newClient(args[1], args[2])
		if err != nil {
			return err
		}
		conn, err := c.dial(askEcho)
		if err != nil {
			return err
		}
		open = append(open, conn)
	}
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	for _, conn := range open {
		if err := conn.Close(); err != nil {
			return err
		}
	}
	return nil
}
