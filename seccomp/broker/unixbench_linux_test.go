package broker

import (
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	probes["bench-unix"] = func(string) any {
		r := &recorder{}
		server := r.serve("server", unix.SOCK_STREAM, 8)
		return timeIt(func(int) {}, func(int) {
			fd := r.unixSocket(unix.SOCK_STREAM)
			fatal(unix.Connect(fd, &unix.SockaddrUnix{Name: "server"}))
			peer, _, err := unix.Accept(server)
			closeFD(peer, err)
			fatal(unix.Close(fd))
		})
	}
}

// BenchmarkUnixConnect reports what a socket, its connect by path and its end cost, with and without a broker.
func BenchmarkUnixConnect(b *testing.B) {
	for name, s := range map[string]setup{"kernel": {}, "broker": {judge: &testJudge{}}, "watched": {judge: &testJudge{}, watched: true}} {
		b.Run(name, func(b *testing.B) {
			var sum float64
			for range b.N {
				s.probe, s.folder, s.filter = "bench-unix", memoryFolder(b), connects
				var ns float64
				runSandbox(b, s, &ns)
				sum += ns
			}
			b.ReportMetric(sum/float64(b.N), "ns/call")
			b.ReportMetric(0, "ns/op")
		})
	}
}
