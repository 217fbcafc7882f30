package runtime

import (
	"errors"
	"fmt"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/proxy/credential"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// withheld is what a command keeps of its launch: the credentials that it does not see.
type withheld struct{ masks *masks }

// masks are the credentials that a launch keeps from its command: variables that are absent or have a fake's value, and files
// that are seen with a fake's content. A launch makes them once, however often it is tried.
type masks struct {
	masked   *credential.Masked
	files    []int // of each mask of the file system's view, its index in credentials.files
	fakes    map[fakeOf]fake
	warnings []string
}

// fakeOf is a file that is asked for: an entry, and where the file lies.
type fakeOf struct {
	index    int
	location string
}

// fake is what it shows, or why it shows nothing.
type fake struct {
	content []byte
	err     error
}

// mask reads the variables that are masked, and prepares the fakes of files (CRED-1 to CRED-6). base is what the command's
// environment is made of.
func (c *Cmd) mask(base []string) error {
	if c.masks != nil {
		return nil
	}
	m := &masks{fakes: map[fakeOf]fake{}}
	if cr := c.cfg.Credentials; cr != nil {
		opts := &c.sandbox.opts
		var err error
		m.masked, err = c.sandbox.secrets.Mask(credential.Spec{
			Credentials: cr, DefaultHosts: c.cfg.Network.AllowedDomains,
			LookupEnv: func(name string) (string, bool) { return policy.Lookup(base, name) }, OwnEnv: c.Env != nil,
			Warn: func(line string) {
				m.warnings = append(m.warnings, line)
				opts.warn(line)
			},
			Debug: func(line string) { opts.logger.Debug(line) },
		})
		if err != nil {
			return err
		}
		for i := range cr.Files {
			if cr.Files[i].Mode == config.ModeMask {
				m.files = append(m.files, i)
			}
		}
	}
	c.masks = m
	return nil
}

// signsAWS tells whether requests of the command are signed again with an AWS key (CRED-27).
func (m *masks) signsAWS() bool { return m.masked != nil && m.masked.SignsAWS() }

// variables are those that the command must not have, and those that it has with another value (CRED-3, CRED-4).
func (m *masks) variables() (unset []string, replace map[string]string) {
	if m.masked == nil {
		return nil, nil
	}
	replace = map[string]string{}
	for _, v := range m.masked.Variables() {
		if v.Unset {
			unset = append(unset, v.Name)
		} else {
			replace[v.Name] = v.Value
		}
	}
	return unset, replace
}

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
