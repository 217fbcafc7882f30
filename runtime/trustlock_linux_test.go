package runtime

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// TLS-8: a session that is about to lock its directory finds it free, whoever sweeps at that moment: without the lock its files
// would go with the next session, under commands that still need them.
func TestSweepingTakesNoLockOfYoungDirectories_TLS8(t *testing.T) {
	parent := t.TempDir()
	dir := parent + "/srt-ca-young"
	succeed(t, os.Mkdir(dir, 0o700))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				sweepTrust(parent, stop)
			}
		}
	}()
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
		f := lockTrust(dir)
		if f == nil {
			t.Error("the directory was locked by a session that sweeps")
			break
		}
		succeed(t, f.Close())
	}
	close(stop)
	<-stopped
}

// TLS-8: with any number of names beside them, what was left is found, and a session that ends waits for no more than a few of
// them.
func TestSweepingStops_TLS8(t *testing.T) {
	parent := t.TempDir()
	old := time.Now().Add(-time.Hour)
	left := parent + "/srt-ca-left"
	succeed(t, os.Mkdir(left, 0o700))
	for i := range 3 * sweepBatch {
		succeed(t, os.WriteFile(parent+"/"+strconv.Itoa(i), nil, 0o600))
	}
	succeed(t, os.Chtimes(left, old, old))
	stop := make(chan struct{})
	sweepTrust(parent, stop)
	if _, err := os.Lstat(left); err == nil {
		t.Error("what was left is still there")
	}
	close(stop)
	var many []string
	for i := range 3 * sweepBatch {
		many = append(many, parent+"/srt-ca-"+strconv.Itoa(i))
		succeed(t, os.Mkdir(many[i], 0o700))
		succeed(t, os.Chtimes(many[i], old, old))
	}
	sweepTrust(parent, stop)
	gone := 0
	for _, dir := range many {
		if _, err := os.Lstat(dir); err != nil {
			gone++
		}
	}
	if gone > sweepBatch {
		t.Errorf("%d directories were removed by a sweep that was to stop, want at most %d", gone, sweepBatch)
	}
}
