package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// workers is how many exchanges are under way at once.
const workers = 32

// client makes exchanges of every kind.
type client struct {
	raws    []string // addresses of the echo server
	web     string
	proxy   *url.URL
	worker  int
	through *http.Client // the proxy
	direct  *http.Client
}

// load: DURATION RAW WEB. It runs in the sandbox.
func load(args []string) error {
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
	if err != nil || proxy.Host == "" {
		return fmt.Errorf("HTTP_PROXY is %q", os.Getenv("HTTP_PROXY"))
	}
	kinds := []func(*client) error{(*client).tunnel, (*client).socks, (*client).captured, (*client).blocking, (*client).proxiedGet,
		(*client).directGet, (*client).refused, (*client).refusedTunnel, (*client).abandoned, (*client).unixSocket, (*client).lookup,
		(*client).deadPort}
	counts := make([]atomic.Int64, len(kinds))
	until := time.Now().Add(d)
	errs := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		c := &client{raws: addresses(args[1]), web: args[2], proxy: proxy, worker: w,
			through: &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), IdleConnTimeout: time.Second}},
			direct:  &http.Client{Transport: &http.Transport{IdleConnTimeout: time.Second}}}
		all.Go(func() {
			for time.Now().Before(until) {
				k := rand.IntN(len(kinds))
				if err := kinds[k](c); err != nil {
					errs[w] = fmt.Errorf("kind %d: %w", k, err)
					return
				}
				counts[k].Add(1)
			}
		})
	}
	all.Wait()
	total := int64(0)
	for k := range counts {
		total += counts[k].Load()
	}
	fmt.Printf("%d exchanges of %d kinds, %.0f a second\n", total, len(kinds), float64(total)/d.Seconds())
	return errors.Join(errs...)
}

// echo sends something of any size and wants it back, half-closing in between.
func echo(conn net.Conn) error {
	defer conn.Close()
	sent := bytes.Repeat([]byte{byte(rand.Int())}, 1+rand.IntN(1<<uint(4+rand.IntN(15))))
	failed := make(chan error, 1)
	go func() {
		_, err := conn.Write(sent)
		failed <- errors.Join(err, conn.(interface{ CloseWrite() error }).CloseWrite())
	}()
	got, err := io.ReadAll(conn)
	if err = errors.Join(err, <-failed); err != nil {
		return err
	}
	if !bytes.Equal(got, sent) {
		return fmt.Errorf("%d bytes sent, %d other ones came back", len(sent), len(got))
	}
	return nil
}

func (c *client) connect(target string) (net.Conn, string, error) {
	conn, err := net.Dial("tcp", c.proxy.Host)
	if err != nil {
		return nil, "", err
	}
	password, _ := c.proxy.User.Password()
	auth := base64.StdEncoding.EncodeToString([]byte(c.proxy.User.Username() + ":" + password))
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nProxy-Authorization: Basic %s\r\n\r\n", target, auth); err != nil {
		return nil, "", errors.Join(err, conn.Close())
	}
	head := make([]byte, 0, 512)
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); {
		if _, err := conn.Read(one); err != nil {
			return nil, "", errors.Join(err, conn.Close())
		}
		head = append(head, one[0])
	}
	return conn, string(head), nil
}

func (c *client) tunnel() error {
	conn, head, err := c.connect(c.raw())
	if err != nil {
		return err
	}
	if !bytes.HasPrefix([]byte(head), []byte("HTTP/1.1 200 ")) {
		return errors.Join(fmt.Errorf("CONNECT: %q", head), conn.Close())
	}
	return echo(conn)
}

func (c *client) refusedTunnel() error {
	conn, head, err := c.connect("denied.test:443")
	if err != nil {
		return err
	}
	defer conn.Close()
	if !bytes.HasPrefix([]byte(head), []byte("HTTP/1.1 403 ")) {
		return fmt.Errorf("CONNECT to a denied host: %q", head)
	}
	return nil
}

func (c *client) socks() error {
	conn, err := net.Dial("tcp", "localhost:1080")
	if err != nil {
		return err
	}
	user := c.proxy.User.Username()
	password, _ := c.proxy.User.Password()
	addr, err := net.ResolveTCPAddr("tcp4", c.raw())
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	request := append([]byte{5, 1, 2, 1, byte(len(user))}, user...)
	request = append(append(request, byte(len(password))), password...)
	request = append(append(request, 5, 1, 0, 1), addr.IP.To4()...)
	request = append(request, byte(addr.Port>>8), byte(addr.Port))
	answer := make([]byte, 2+2+10)
	if _, err = conn.Write(request); err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	if err != nil || !bytes.Equal(answer[:6], []byte{5, 2, 1, 0, 5, 0}) {
		return errors.Join(fmt.Errorf("SOCKS: % x", answer), err, conn.Close())
	}
	return echo(conn)
}

// captured connects without a proxy, as Go does: without blocking.
func (c *client) captured() error {
	conn, err := net.Dial("tcp", c.raw())
	if err != nil {
		return err
	}
	return echo(conn)
}

// blocking connects a blocking socket.
func (c *client) blocking() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	addr, err := net.ResolveTCPAddr("tcp4", c.raw())
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}); err != nil {
		return err
	}
	conn, err := net.FileConn(f)
	if err != nil {
		return err
	}
	return echo(conn)
}

func get(client *http.Client, address string) error {
	resp, err := client.Get(address)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

func (c *client) proxiedGet() error { return get(c.through, "http://"+c.web+"/") }
func (c *client) directGet() error  { return get(c.direct, "http://"+c.web+"/") }

func (c *client) refused() error {
	conn, err := net.Dial("tcp", fmt.Sprintf("203.0.113.%d:80", rand.IntN(255)))
	if err == nil {
		return errors.Join(errors.New("a refused address was reached"), conn.Close())
	}
	if !errors.Is(err, syscall.EACCES) {
		return err
	}
	return nil
}

// deadPort connects to an allowed host where nothing listens.
func (c *client) deadPort() error {
	host, _, err := net.SplitHostPort(c.raw())
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", net.JoinHostPort(host, "9"))
	if err == nil {
		return errors.Join(errors.New("a dead port was reached"), conn.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return nil
}

// abandoned gives up in the middle of whatever it is in the middle of.
func (c *client) abandoned() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(1000))*time.Microsecond)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.raw())
	if err != nil {
		return nil // given up before the connection stood
	}
	tcp := conn.(*net.TCPConn)
	_, err = tcp.Write(make([]byte, 1+rand.IntN(1<<16)))
	if rand.IntN(2) == 0 {
		err = errors.Join(err, tcp.SetLinger(0))
	}
	return errors.Join(err, tcp.Close())
}

// unixSocket binds a socket in the sandbox and connects to it.
func (c *client) unixSocket() error {
	path := scratch(c.worker)
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	defer l.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	return conn.Close()
}

// lookup asks the stub for a name that nobody has asked for.
func (c *client) lookup() error {
	_, err := net.LookupHost(fmt.Sprintf("n%d.example.test", rand.IntN(1<<30)))
	return err
}

// addresses are those of host:port,port,...
func addresses(text string) (list []string) {
	host, ports, _ := net.SplitHostPort(text) // it was made by the servers
	for port := range strings.SplitSeq(ports, ",") {
		list = append(list, net.JoinHostPort(host, port))
	}
	return list
}

// raw is one of the echo server's addresses.
func (c *client) raw() string { return c.raws[rand.IntN(len(c.raws))] }
