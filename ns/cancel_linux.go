package ns

// Kill ends the process, in its namespaces, whatever it is doing: a Start that is under way fails then, and so does one that
// comes later. It does not take the place of Start or Close. It may be called from any goroutine, also after these, and
// returns os.ErrProcessDone once the process has been waited for.
func (p *Prepared) Kill() error { return p.process.Kill() }
