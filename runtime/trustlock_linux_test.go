package runtime

import (
	"os"
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
				sweepTrust(parent)
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
