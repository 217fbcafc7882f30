package runtime

// configure fixes what is in force for the command: the session's configuration as it is now, and the command's override in
// it, checked like a settings file (LIB-2, LIB-13, LIB-16).
func (c *Cmd) configure() error {
	c.state = c.sandbox.current()
	if c.cfg = c.state.cfg; c.sandbox.opts.fixedLaunch {
		c.cfg = c.sandbox.begun
	}
	if c.Override == nil {
		return nil
	}
	cfg, err := c.Override.Apply(c.cfg)
	if err != nil {
		return err
	}
	c.cfg = cfg
	return nil
}
