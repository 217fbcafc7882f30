package runtime

import (
	"errors"
	"fmt"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/proxy/credential"
)

// limitCores keeps a process that is srt's own from dumping core as soon as it may hold what its commands must not have
// (CRED-35). It is called before the process of the command is made, which would inherit the limit.
func (c *Cmd) limitCores() error {
	if c.cfg.Credentials == nil || !c.sandbox.opts.limitCores {
		return nil
	}
	return ns.LimitCores()
}

// fake is the content of a file as the command sees it, for an entry of the masks of its view (fsview.Input.FakeContent). A
// file is read once in a launch.
func (m *masks) fake(entry int, location string) ([]byte, error) {
	key := fakeOf{m.files[entry], location}
	if f, known := m.fakes[key]; known {
		return f.content, f.err
	}
	content, err := m.masked.File(key.index, location)
	switch {
	case errors.Is(err, credential.ErrHide):
		err = fmt.Errorf("%w: %w", fsview.ErrHideUnmasked, err)
	case errors.Is(err, credential.ErrLeave):
		err = fmt.Errorf("%w: %w", fsview.ErrLeaveUnmasked, err)
	}
	m.fakes[key] = fake{content, err}
	return content, err
}
