//go:build !linux

package runtime

// The seam between platforms where commands cannot be confined yet: nothing runs.

func (c *Cmd) start() (process, error) { return nil, checkPlatform() }

func (c *Cmd) explain() (*Explanation, error) { return nil, checkPlatform() }

// backendName is what Backend gives.
const backendName = ""

// judgesLater tells whether rules hold for what comes to exist later.
func judgesLater() bool { return true }

// insidePorts are the ports of the proxies as commands see them.
func insidePorts() (http, socks int) { return 0, 0 }

// checkSandbox tries whether a sandbox can be made.
func checkSandbox() error { return checkPlatform() }

// missing is what commands have less of here.
func missing() []string { return nil }
