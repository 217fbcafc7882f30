package ns

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// Where package os makes namespaces it copies this process and goes on in the copy, heap and all, as an embedder's program may do at
// any time.
func TestForksOfOthersHaveTheirHeap(t *testing.T) {
	var others sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				cmd := exec.Command("/bin/true")
				cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
					UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}}
				if err := cmd.Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 100 {
		if _, st, err := run(t, minimal(newProgram(t), "/bin/true")); err != nil || st.Code != 0 {
			t.Errorf("%v, %v", st, err)
			break
		}
	}
	close(done)
	others.Wait()
}
