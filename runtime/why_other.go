//go:build !linux

package runtime

func (c *Cmd) pathJudge() (pathJudge, error) { return nil, checkPlatform() }
