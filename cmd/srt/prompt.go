package main

import (
	"errors"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
)

// prompt is --ask: who decides and where that is asked. A nil prompt asks nobody.
type prompt struct {
	asker    *asker
	terminal *terminalDialog
}

// errAskTimeoutAlone says that an option has no effect.
var errAskTimeoutAlone = errors.New("--ask-timeout says how long a question of --ask stands. Give --ask too, or leave it out.")

// openPrompt opens the terminal for --ask. An option that cannot work is an error, so that nobody waits for a question
// that never comes; under strictAllowlist, which only the control channel could take back, there is none to come.
func (e *execution) openPrompt(cfg *config.Config) (*prompt, error) {
	if !e.opts.ask {
		if e.opts.askTimeout != 0 {
			return nil, errAskTimeoutAlone
		}
		return nil, nil //nolint:nilnil // nobody is asked
	}
	timeout := e.opts.askTimeout
	if timeout == 0 {
		timeout = defaultAskTimeout
	}
	d, err := e.app.openDialog(timeout, func(text string, err error) { e.log.Debug(text, "error", err) })
	switch {
	case err == nil:
		return &prompt{newAsker(d), d}, nil
	case cfg.Network.StrictAllowlist && e.opts.controlFD == 0:
		e.log.Debug("--ask has no effect under network.strictAllowlist")
		return nil, nil //nolint:nilnil // nobody is asked
	}
	return nil, err
}

// callback is what the session asks, nil if nobody is to be asked.
func (p *prompt) callback() runtime.AskFunc {
	if p == nil {
		return nil
	}
	return p.asker.ask
}

// attach gives the prompt the command that runs. It is called once.
func (p *prompt) attach(c process) {
	if p != nil {
		p.terminal.attach(c)
		close(p.asker.attached)
	}
}

// interrupt ends what is being asked, because srt was told to end the command.
func (p *prompt) interrupt() {
	if p != nil {
		p.asker.interrupt()
	}
}

// end ends all questions, because the command has ended.
func (p *prompt) end() {
	if p != nil {
		p.asker.close()
	}
}

// close gives up the terminal. Whoever still waits for an answer is refused.
func (p *prompt) close() {
	if p != nil {
		p.asker.close()
		p.terminal.close()
	}
}
