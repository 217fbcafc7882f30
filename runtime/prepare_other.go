//go:build !linux

package runtime

import "os"

// prepared is a command that waits for the process that stands for it: there is none on this system.
type prepared struct{}

// await says why the command cannot be prepared.
func (c *Cmd) await() (*Launch, error) {
	c.prepared = nil
	return nil, checkPlatform()
}

func (*prepared) revoke(error) {}

func (*prepared) release([]*os.File) error { return nil }
