package mitm

import (
	"net"
	"strconv"
	"testing"

	"crypto/tls"
)

func BenchmarkGenerate(b *testing.B) {
	for b.Loop() {
		if _, err := Generate(GenerateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHostRoots(b *testing.B) {
	for b.Loop() {
		if _, err := HostRoots(RootOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPool(b *testing.B) {
	r, err := HostRoots(RootOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r.makePool()
	}
}

func BenchmarkWriteFiles(b *testing.B) {
	ca, err := Generate(GenerateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	r, err := HostRoots(RootOptions{})
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	for b.Loop() {
		f, err := WriteFiles(dir, ca, r, true)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Remove(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMint(b *testing.B) {
	ca, err := Generate(GenerateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		i++
		if _, err := ca.Leaf("host-" + strconv.Itoa(i) + ".example"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHandshake is both ends of a handshake: a client's work is in it too.
func BenchmarkHandshake(b *testing.B) {
	ca, err := Generate(GenerateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		cache tls.ClientSessionCache
	}{{"full", nil}, {"resumed", tls.NewLRUClientSessionCache(4)}} {
		b.Run(row.name, func(b *testing.B) {
			config := &tls.Config{RootCAs: poolOf(ca), ServerName: "bench.example", ClientSessionCache: row.cache}
			for b.Loop() {
				client, server := net.Pipe()
				done := make(chan error, 1)
				go func() {
					conn, _, err := ca.Handshake(b.Context(), server, "bench.example", false)
					if err == nil {
						_, err = conn.Write([]byte("x"))
					}
					done <- err
				}()
				conn := tls.Client(client, config)
				if _, err := conn.Read(make([]byte, 1)); err != nil {
					b.Fatal(err)
				}
				if err := <-done; err != nil {
					b.Fatal(err)
				}
				client.Close()
				server.Close()
			}
		})
	}
}
