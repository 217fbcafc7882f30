//go:build !linux && !darwin && !windows

package runtime

func checkPlatform() error { return ErrUnsupportedPlatform }

func (c *Cmd) start() (process, error) { return nil, checkPlatform() }

func (c *Cmd) explain() (*Explanation, error) { return nil, checkPlatform() }
