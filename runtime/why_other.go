//go:build !linux

package runtime

import "errors"

func (c *Cmd) pathJudge() (pathJudge, error) { return nil, checkPlatform() }

// noCapture tells why connections of programs are not captured.
func noCapture() error { return errors.New("that is done on Linux alone") }
