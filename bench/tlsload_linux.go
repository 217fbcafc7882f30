package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// transferBytes is how long a body of a transfer is. More than one may pass in a run.
const transferBytes = 64 << 20

// secureTransport makes the connections of one or more clients over TLS, through the proxy if there is one. What the
// server's name is verified with is as SSL_CERT_FILE says.
func (c *client) secureTransport() *http.Transport {
	return &http.Transport{
		MaxIdleConnsPerHost: 64,
		ReadBufferSize:      64 << 10,
		WriteBufferSize:     64 << 10,
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, c.hop)
			if err != nil {
				return nil, err
			}
			if c.proxy != nil {
				if err := c.connect(conn); err != nil {
					return nil, errors.Join(err, conn.Close())
				}
			}
			host, _, err := net.SplitHostPort(c.target)
			if err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			secured := tls.Client(conn, &tls.Config{ServerName: host, NextProtos: []string{"http/1.1"}})
			if err := secured.HandshakeContext(ctx); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return secured, nil
		},
	}
}

// tlsOnce returns a small GET over TLS: over a connection that is kept, or over a new one.
func (c *client) tlsOnce(kind string) func() error {
	transport := c.secureTransport()
	transport.DisableKeepAlives = kind == "tls-new"
	return func() error { return get(transport, "https://"+c.target+"/2") }
}

// tlsTransferMode: DIRECTION CONNECTIONS SECONDS TARGET WAY. Prints MB/s of all connections together, and GB.
func tlsTransferMode(args []string) error {
	n, err1 := strconv.Atoi(args[1])
	seconds, err2 := strconv.ParseFloat(args[2], 64)
	c, err3 := newClient(args[3], args[4])
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	transports := make([]*http.Transport, n)
	for i := range transports {
		transports[i] = c.secureTransport()
		if err := get(transports[i], "https://"+c.target+"/2"); err != nil { // the handshake is not what is measured
			return err
		}
	}
	var total, worker atomic.Int64
	start := time.Now()
	until := start.Add(time.Duration(seconds * float64(time.Second)))
	err := parallel(n, func() error {
		t := transports[worker.Add(1)-1]
		for done := false; !done; {
			moved, err := c.exchangeBody(t, args[0], until, &done)
			total.Add(moved)
			if err != nil {
				return err
			}
		}
		return nil
	})
	took := time.Since(start)
	fmt.Println(float64(total.Load())/1e6/took.Seconds(), float64(total.Load())/1e9)
	return err
}

// exchangeBody moves one body in a direction, and sets done once the time is over. A download then ends in its midst.
func (c *client) exchangeBody(t *http.Transport, direction string, until time.Time, done *bool) (int64, error) {
	req, err := http.NewRequest(http.MethodGet, "https://"+c.target+"/"+strconv.Itoa(transferBytes), nil)
	if err == nil && direction == "up" {
		req, err = http.NewRequest(http.MethodPut, "https://"+c.target+"/", io.LimitReader(zeros{}, transferBytes))
		req.ContentLength = transferBytes
	}
	if err != nil {
		return 0, err
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if direction == "up" {
		text, err := io.ReadAll(resp.Body)
		if err == nil && string(text) != strconv.Itoa(transferBytes) {
			err = fmt.Errorf("the server counted %q bytes", text)
		}
		*done = !time.Now().Before(until)
		return transferBytes, err
	}
	var sum int64
	for b := make([]byte, chunk); ; {
		n, err := resp.Body.Read(b)
		sum += int64(n)
		switch *done = !time.Now().Before(until); {
		case *done, errors.Is(err, io.EOF) && sum == transferBytes:
			return sum, nil
		case err != nil:
			return sum, err
		}
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// holdTLS opens n connections over TLS that each have had a response, or with busy have begun to get a long one.
func (c *client) holdTLS(n int, busy bool) error {
	path := "2"
	if busy {
		path = strconv.Itoa(1 << 30)
	}
	for range n {
		req, err := http.NewRequest(http.MethodGet, "https://"+c.target+"/"+path, nil)
		if err != nil {
			return err
		}
		resp, err := c.secureTransport().RoundTrip(req)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		if !busy {
			_, err = io.Copy(io.Discard, resp.Body)
			if err := errors.Join(err, resp.Body.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

// relayMode: TARGET AUTHORITY. A relay that ends TLS on one side and begins it on the other, for any number of connections,
// and prints its address. It reads no request. Its certificate and key come on standard input.
func relayMode(args []string) error {
	text, err1 := os.ReadFile(args[1])
	pair, err2 := io.ReadAll(os.Stdin)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(pair, pair)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	host, _, err := net.SplitHostPort(args[0])
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	near := &tls.Config{Certificates: []tls.Certificate{certificate}, DynamicRecordSizingDisabled: true}
	far := &tls.Config{ServerName: host, RootCAs: roots, DynamicRecordSizingDisabled: true, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go relayOne(tls.Server(conn, near), args[0], far)
	}
}

// relayOne relays until one side ends. Its errors are those of the two ends.
func relayOne(client *tls.Conn, target string, config *tls.Config) {
	defer client.Close()
	server, err := tls.Dial("tcp", target, config)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		copyRecords(server, client)
		server.CloseWrite()
	}()
	copyRecords(client, server)
	client.CloseWrite()
}

// copyRecords copies by records: TLS gives and takes one of 16 KiB at a time.
func copyRecords(to io.Writer, from io.Reader) {
	io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 32<<10))
}
