package runtime

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	goruntime "runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// TestMain checks at the end that no test has left a goroutine or a descriptor: every session and command of them is closed
// then (LIB-6, LIB-17, LIB-51).
func TestMain(m *testing.M) {
	// Package signal keeps a goroutine from its first use on, and fuzzing uses it.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt)
	signal.Stop(caught)
	before := leftovers{goroutines: goruntime.NumGoroutine(), files: openFiles()}
	code := m.Run()
	if code == 0 && !before.settle() {
		code = 1
	}
	os.Exit(code)
}

// leftovers is what a process has at a moment.
type leftovers struct {
	goroutines int
	files      map[string]string // number to what it is; nil where the system does not tell
}

// openFiles are the descriptors of the process. What the runtime itself keeps, its poller, counts as open from the start.
func openFiles() map[string]string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	files := map[string]string{}
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || strings.HasPrefix(to, "anon_inode:[event") || strings.HasSuffix(to, "/fd") {
			continue // of this listing, or of the runtime's poller
		}
		files[e.Name()] = to
	}
	return files
}

// settle waits until there is no more than there was, and prints what is left if that does not come to be: what ends does so
// a moment after it was told to.
func (l leftovers) settle() bool {
	const attempts = 400
	for i := range attempts {
		extra := l.extraFiles()
		if goruntime.NumGoroutine() <= l.goroutines && len(extra) == 0 {
			return true
		}
		if i == attempts-1 {
			var stacks bytes.Buffer
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1) // a buffer takes everything
			fmt.Printf("LEFT: %d goroutines of %d, descriptors %v\n%s\n", goruntime.NumGoroutine(), l.goroutines, extra, stacks.String())
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
	return true
}

// extraFiles are the descriptors that were not there before.
func (l leftovers) extraFiles() (list []string) {
	for fd, to := range openFiles() {
		if _, was := l.files[fd]; !was {
			list = append(list, fd+" -> "+to)
		}
	}
	return list
}
