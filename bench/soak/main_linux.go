// Command soak keeps a sandbox's network under full load for a while and says whether anything leaks.
//
// What belongs here: the load, and the counting of descriptors, goroutines and memory. What does not: speed (command
// bench) and right or wrong answers (the tests).
//
//	go run ./bench/soak [-for 30m]
//
// The session runs in this process, so that its own counts can be taken; the load is this program again, as a command of that
// session; the servers are a third process. Everything stays on this host and ends by itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

func main() {
	modes := map[string]func([]string) error{"load": load, "serve": serve}
	err := error(nil)
	if len(os.Args) > 1 && modes[os.Args[1]] != nil {
		err = modes[os.Args[1]](os.Args[2:])
	} else {
		err = soak()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// counts is what must not grow.
type counts struct {
	files, goroutines, threads int
	heap, resident             uint64 // bytes
}

func (c counts) String() string {
	return fmt.Sprintf("%6d %11d %8d %9.1f %9.1f", c.files, c.goroutines, c.threads, float64(c.heap)/1e6, float64(c.resident)/1e6)
}

// count takes the counts of this process, after what can go has gone.
func count() (counts, error) {
	goruntime.GC()
	debug.FreeOSMemory()
	c := counts{goroutines: goruntime.NumGoroutine()}
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	c.heap = m.HeapAlloc
	for dir, n := range map[string]*int{"/proc/self/fd": &c.files, "/proc/self/task": &c.threads} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return c, err
		}
		*n = len(entries)
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return c, err
	}
	var size, resident uint64
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		return c, err
	}
	c.resident = resident * uint64(os.Getpagesize())
	return c, nil
}

func soak() error {
	duration := flag.Duration("for", 30*time.Minute, "how long to run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "srt-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	servers, end, err := startServers(self)
	if err != nil {
		return err
	}
	defer end()
	s, err := newSession(ctx, folder, servers)
	if err != nil {
		return err
	}
	defer s.Close() // again after an error
	fmt.Println("      time  files  goroutines  threads   heap MB    RSS MB")
	// The first round makes what stays: pools, caches, threads.
	var before counts
	for _, round := range []time.Duration{5 * time.Second, *duration} {
		if err := run(ctx, s, self, folder, servers, round); err != nil {
			return err
		}
		after, err := settled(before)
		if err != nil {
			return err
		}
		fmt.Printf("%10s %v\n", "at rest", after)
		if before.files != 0 {
			return compare(before, after)
		}
		before = after
	}
	return nil
}

// settled waits until the counts are not above an earlier state, for as long as what is idle may be kept.
func settled(before counts) (c counts, err error) {
	for range 15 {
		time.Sleep(time.Second)
		if c, err = count(); err != nil || c.files <= before.files && c.goroutines <= before.goroutines {
			return c, err
		}
	}
	return c, nil
}

func compare(before, after counts) error {
	const allowed = 8 << 20 // of memory: caches that are bounded, and what the collector leaves
	switch {
	case after.files > before.files:
		return fmt.Errorf("%d descriptors have leaked", after.files-before.files)
	case after.goroutines > before.goroutines:
		return fmt.Errorf("%d goroutines have leaked", after.goroutines-before.goroutines)
	case after.heap > before.heap+allowed:
		return fmt.Errorf("%d bytes of heap have leaked", after.heap-before.heap)
	}
	fmt.Println("nothing leaks")
	return nil
}

func newSession(ctx context.Context, folder string, servers []string) (*runtime.Sandbox, error) {
	host, _, err := net.SplitHostPort(servers[0])
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf(`{"network": {"allowedDomains": [%q], "deniedDomains": ["denied.test"]},
		"filesystem": {"denyRead": [], "allowWrite": [%q], "denyWrite": []}}`, host, folder)
	cfg, err := config.Decode([]byte(text))
	if err != nil {
		return nil, err
	}
	return runtime.New(ctx, cfg, runtime.WithOnViolation(func(violation.Event) {}))
}

// run runs the load for a while and prints the counts meanwhile.
func run(ctx context.Context, s *runtime.Sandbox, self, folder string, servers []string, d time.Duration) error {
	cmd := s.Command(ctx, self, append([]string{"load", d.String()}, servers...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	start, done := time.Now(), make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(max(d/30, 2*time.Second))
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			c, err := count()
			if err != nil {
				return err
			}
			fmt.Printf("%10s %v\n", time.Since(start).Round(time.Second), c)
		}
	}
}

// startServers starts the far end and gives its addresses: raw, web.
func startServers(self string) (addresses []string, end func(), err error) {
	cmd := exec.Command(self, "serve")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	end = func() {
		in.Close() // which ends it
		cmd.Wait()
	}
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil && !errors.Is(err, io.EOF) {
		end()
		return nil, nil, err
	}
	if addresses = strings.Fields(string(line[:n])); len(addresses) != 2 {
		end()
		return nil, nil, fmt.Errorf("the servers said %q", line[:n])
	}
	return addresses, end, nil
}

// scratch is a path for a socket of a worker.
func scratch(worker int) string { return filepath.Join(".", fmt.Sprintf("socket-%d", worker)) }
