package inspect

import (
	"bufio"
	"io"
	"net"
	"runtime"
	"strconv"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// kinds are what a benchmark runs over; "direct" is the same two ends without the engine.
func kinds(b *testing.B, f func(b *testing.B, c net.Conn)) {
	server := func(c net.Conn) {
		defer c.Close()
		serveBench(c)
	}
	for _, kind := range []string{"tcp", "tls"} {
		connect := func() (net.Conn, net.Conn) {
			if kind == "tls" {
				return tlsPair(b)
			}
			return pair(b)
		}
		b.Run(kind+"/direct", func(b *testing.B) {
			near, far := connect()
			go server(far)
			f(b, near)
			near.Close()
		})
		b.Run(kind+"/inspected", func(b *testing.B) {
			h := &bench{dial: func(ctx) (net.Conn, error) {
				near, far := connect()
				go server(far)
				return near, nil
			}}
			near, far := connect()
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer far.Close()
				Serve(b.Context(), far, bufio.NewReader(far), h, Limits{})
			}()
			f(b, near)
			near.Close()
			<-done
		})
	}
}

// bench is passing without its records.
type bench struct{ dial func(ctx) (net.Conn, error) }

func (h *bench) Judge(_ ctx, r *Request) (*Outgoing, Answer) {
	out := forwarded(r)
	out.Dial = h.dial
	return out, nil
}
func (*bench) Malformed(Malformed) Answer          { return nil }
func (*bench) Failed(_ *Request, err error) Answer { panic(err) }

// serveBench answers GET with as many bytes as its target says, and drops bodies.
func serveBench(c net.Conn) {
	br := bufio.NewReader(c)
	block := make([]byte, 64<<10)
	for {
		head, err := httphead.ReadHead(br, nil)
		if err != nil {
			return
		}
		r, err := httphead.ParseRequest(head)
		if err != nil {
			return
		}
		_, length, _ := r.Framing()
		if _, err := io.CopyN(io.Discard, br, length); err != nil {
			return
		}
		size, _ := strconv.Atoi(r.Target[1:])
		answer := "HTTP/1.1 200 OK\r\nContent-Length: " + itoa(size) + "\r\n\r\n"
		first := min(size, 4<<10)
		if _, err := c.Write(append([]byte(answer), block[:first]...)); err != nil {
			return
		}
		for size -= first; size > 0; {
			n, err := c.Write(block[:min(size, len(block))])
			if err != nil {
				return
			}
			size -= n
		}
	}
}

func request(b *testing.B, c net.Conn, br *bufio.Reader, head string, body []byte) {
	if _, err := io.WriteString(c, head); err != nil {
		b.Fatal(err)
	}
	if len(body) > 0 {
		if _, err := c.Write(body); err != nil {
			b.Fatal(err)
		}
	}
	got, err := httphead.ReadHead(br, nil)
	if err != nil {
		b.Fatal(err)
	}
	r, err := httphead.ParseResponse(got)
	if err != nil {
		b.Fatal(err)
	}
	_, length, _ := r.Framing("GET")
	if _, err := io.CopyN(io.Discard, br, length); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkGet is small requests, one after the other.
func BenchmarkGet(b *testing.B) {
	kinds(b, func(b *testing.B, c net.Conn) {
		br := bufio.NewReader(c)
		b.ReportAllocs()
		for b.Loop() {
			request(b, c, br, "GET /100 HTTP/1.1\r\nHost: x\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n", nil)
		}
	})
}

// BenchmarkDownload and BenchmarkUpload move 64 MiB for each iteration.
func BenchmarkDownload(b *testing.B) {
	kinds(b, func(b *testing.B, c net.Conn) {
		br := bufio.NewReaderSize(c, 64<<10)
		b.ReportAllocs()
		b.SetBytes(64 << 20)
		for b.Loop() {
			request(b, c, br, "GET /67108864 HTTP/1.1\r\nHost: x\r\n\r\n", nil)
		}
	})
}

func BenchmarkUpload(b *testing.B) {
	body := make([]byte, 64<<20)
	kinds(b, func(b *testing.B, c net.Conn) {
		br := bufio.NewReader(c)
		b.ReportAllocs()
		b.SetBytes(64 << 20)
		for b.Loop() {
			request(b, c, br, "POST /0 HTTP/1.1\r\nHost: x\r\nContent-Length: 67108864\r\n\r\n", body)
		}
	})
}

// BenchmarkIdle reports what a connection that waits for its next request, with an upstream connection, holds.
func BenchmarkIdle(b *testing.B) {
	const connections = 500
	for b.Loop() {
		ends := make([]net.Conn, connections)
		h := &bench{dial: func(ctx) (net.Conn, error) { return &memory{in: always200{}}, nil }}
		memoryBefore := inUse()
		for i := range ends {
			near, far := net.Pipe()
			ends[i] = near
			go func() {
				defer far.Close()
				Serve(b.Context(), far, nil, h, Limits{})
			}()
			br := bufio.NewReaderSize(near, 64)
			request(b, near, br, "GET /0 HTTP/1.1\r\nHost: x\r\n\r\n", nil)
		}
		b.ReportMetric(float64(inUse()-memoryBefore)/connections, "B/conn")
		for _, c := range ends {
			c.Close()
		}
	}
}

// always200 answers each read.
type always200 struct{}

func (always200) Read(p []byte) (int, error) {
	return copy(p, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), nil
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
