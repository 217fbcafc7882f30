package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"
)

// What a terminated tunnel costs beside the same client and server with plain TLS between them: requests one after the
// other, a large response, and new tunnels.

// benchOrigin is a fast server: it answers /N with N bytes.
func benchOrigin(b testing.TB) int {
	block := make([]byte, 64<<10)
	return serveTLS(b, func(c net.Conn) {
		br := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			n := 0
			_, _ = fmt.Sscanf(req.URL.Path, "/%d", &n)
			if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", n); err != nil {
				return
			}
			for n > 0 {
				k := min(n, len(block))
				if _, err := c.Write(block[:k]); err != nil {
					return
				}
				n -= k
			}
		}
	})
}

// spent reports the processor time of client, proxy and server together from here on, which other programs of the machine
// change less than what a clock shows.
func spent(b *testing.B) (report func()) {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	from := used()
	return func() { b.ReportMetric(float64(used()-from)/float64(b.N), "cpu-ns/op") }
}

// benchWays are the two ways to the server, each of which opens one connection.
func benchWays(b testing.TB, change ...func(*Options)) map[string]func() *tls.Conn {
	port := benchOrigin(b)
	h := terminating(b, nil, change...)
	h.target = fmt.Sprintf("name.test:%d", port)
	ours, theirs := authorities()
	through := &tls.Config{ServerName: "name.test", RootCAs: poolOf(ours), ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	direct := &tls.Config{ServerName: "name.test", RootCAs: poolOf(theirs), ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	return map[string]func() *tls.Conn{
		"terminated": func() *tls.Conn { return tls.Client(h.tunnel(h.target).TCPConn, through) },
		"direct": func() *tls.Conn {
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				b.Fatal(err)
			}
			return tls.Client(c, direct)
		},
	}
}

func fetch(b testing.TB, c *tls.Conn, br *bufio.Reader, n int) {
	fmt.Fprintf(c, "GET /%d HTTP/1.1\r\nHost: name.test\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n", n)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		b.Fatal(err)
	}
	if got, err := io.Copy(io.Discard, resp.Body); err != nil || got != int64(n) {
		b.Fatal(got, err)
	}
}

func BenchmarkTerminated(b *testing.B) {
	for _, way := range []string{"direct", "terminated"} {
		b.Run("GET/"+way, func(b *testing.B) {
			c := benchWays(b)[way]()
			defer c.Close()
			br := bufio.NewReader(c)
			fetch(b, c, br, 100)
			b.ReportAllocs()
			defer spent(b)()
			for b.Loop() {
				fetch(b, c, br, 100)
			}
		})
		b.Run("GET-16/"+way, func(b *testing.B) {
			open := benchWays(b)[way]
			b.SetParallelism(8)
			defer spent(b)()
			b.RunParallel(func(pb *testing.PB) {
				c := open()
				defer c.Close()
				br := bufio.NewReader(c)
				for pb.Next() {
					fetch(b, c, br, 100)
				}
			})
		})
		b.Run("64MiB/"+way, func(b *testing.B) {
			c := benchWays(b)[way]()
			defer c.Close()
			br := bufio.NewReader(c)
			b.SetBytes(64 << 20)
			defer spent(b)()
			for b.Loop() {
				fetch(b, c, br, 64<<20)
			}
		})
		b.Run("new/"+way, func(b *testing.B) {
			open := benchWays(b)[way]
			defer spent(b)()
			for b.Loop() {
				c := open()
				fetch(b, c, bufio.NewReader(c), 100)
				c.Close()
			}
		})
	}
}
