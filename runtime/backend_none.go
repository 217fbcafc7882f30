//go:build !linux

package runtime

import "github.com/srt-sandbox/srt/runtime/config"

// The seam between platforms where commands cannot be confined yet: nothing runs.

func (c *Cmd) start() (process, error) { return nil, checkPlatform() }

func (c *Cmd) explain() (*Explanation, error) { return nil, checkPlatform() }

// backendName is what Backend gives.
const backendName = ""

// judgesLater tells whether rules hold for what comes to exist later.
func judgesLater() bool { return true }

// insidePorts are the ports of the proxies as commands see them.
func insidePorts() (http, socks int) { return 0, 0 }

// check adds nothing: there is nothing to ask about.
func (r *Report) check(*config.Config) {}
