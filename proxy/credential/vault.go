package credential

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/runtime/config"
)

// What Masked.File answers when a file gets no fake. Any other error ends the launch.
var (
	// ErrHide says that the file cannot be masked and must be hidden (CRED-9, CRED-14).
	ErrHide = errors.New("the file cannot be masked")
	// ErrLeave says that the file holds nothing to mask and stays as it is; the person was warned (CRED-14).
	ErrLeave = errors.New("the file holds nothing to mask")
)

// Spec is what one launch masks. The zero value masks nothing.
type Spec struct {
	// Credentials is the section of the launch's settings, validated; nil: none. It must not change afterwards.
	Credentials *config.Credentials
	// DefaultHosts are the entries of network.allowedDomains in effect: where a value may go whose entry has no
	// injectHosts. Ports are ignored (CRED-1).
	DefaultHosts []string
	// LookupEnv reads srt's own environment, like os.LookupEnv. nil: no variable is set.
	LookupEnv func(name string) (string, bool)
	// OwnEnv says that LookupEnv reads an environment that is this launch's own. A value in it that differs from what an earlier
	// launch had is then another credential, with a sentinel of its own, and not the same one changed (CRED-6): one command must
	// not send what was meant for another.
	OwnEnv bool
	// Warn is given whole lines for standard error, Debug lines for the debug log. Neither ever holds a value. Both are
	// called by Mask and File, on the goroutine of their caller. nil: dropped.
	Warn, Debug func(line string)
}

// Variable is one variable of a command's environment.
type Variable struct {
	Name, Value string
	Unset       bool // the command must not have the variable at all; Value is empty
}

// Masked is what one launch's command gets to see. Its methods may be called by any number of goroutines.
type Masked struct {
	store       *Store
	variables   []Variable
	files       []*entry // by index in credentials.files; nil: not masked
	signsAWS    bool
	warn, debug func(string)
}

// entry is one masking entry of the settings, prepared.
type entry struct {
	label    string // for messages: credentials.files entry "~/.netrc"
	what     kind
	rule     config.Credential
	hosts    []config.Domain
	hostsKey string
	copies   bool     // maskDuplicates
	pattern  string   // what program is compiled from
	program  *program // nil: the whole text is the value
}

// kind says what an entry masks.
type kind uint8

const (
	sourceFile kind = iota
	sourceVariable
)

// noun names the kind in a sentence.
func (k kind) noun() string {
	if k == sourceVariable {
		return "variable"
	}
	return "file"
}

// Variables returns what differs from srt's own environment: masked variables with their fakes, and those to leave out
// (CRED-3, CRED-4). The caller may keep it.
func (m *Masked) Variables() []Variable { return slices.Clone(m.variables) }

// SignsAWS reports whether an AWS key is masked and set as a whole, so that requests are signed again (CRED-27).
func (m *Masked) SignsAWS() bool { return m.signsAWS }

// Mask prepares the fakes of one launch (CRED-1 to CRED-6). Variables are read now, files when File asks for them.
//
// The error names an entry and what to do; it is an *EntryError, or ErrClosed.
func (s *Store) Mask(spec Spec) (*Masked, error) {
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return nil, ErrClosed
	}
	m := &Masked{store: s, warn: spec.Warn, debug: spec.Debug}
	for _, f := range []*func(string){&m.warn, &m.debug} {
		if *f == nil {
			*f = func(string) {}
		}
	}
	if spec.Credentials == nil {
		return m, nil
	}
	if err := m.prepareFiles(spec); err != nil {
		return nil, err
	}
	if err := m.maskVariables(spec); err != nil {
		return nil, err
	}
	return m, nil
}

// prepareFiles prepares the entries that mask files.
func (m *Masked) prepareFiles(spec Spec) error {
	m.files = make([]*entry, len(spec.Credentials.Files))
	for i := range spec.Credentials.Files {
		f := &spec.Credentials.Files[i]
		if f.Mode != config.ModeMask {
			continue
		}
		e, err := m.store.prepare(sourceFile, fmt.Sprintf("credentials.files entry %q", f.Path), f.Credential, spec)
		if err != nil {
			return err
		}
		e.copies = f.MaskDuplicates
		m.files[i] = e
	}
	return nil
}

// prepare parses what an entry says: its hosts and its pattern.
func (s *Store) prepare(what kind, label string, rule config.Credential, spec Spec) (*entry, error) {
	e := &entry{label: label, what: what, rule: rule}
	texts := rule.InjectHosts
	if texts == nil {
		texts = spec.DefaultHosts
	}
	var err error
	if e.hosts, e.hostsKey, err = parseHosts(texts); err != nil {
		return nil, &EntryError{Entry: label, Err: err}
	}
	e.pattern = rule.Extract
	if rule.Decode == config.DecodeJWT {
		switch {
		case what == sourceVariable:
			e.pattern = "" // CRED-18: the whole value
		case e.pattern == "":
			e.pattern = jwtPattern
		}
	}
	if e.pattern == "" {
		return e, nil
	}
	if e.program, err = s.programs.compile(e.pattern); err != nil {
		return nil, &EntryError{Entry: label, Err: err}
	}
	return e, nil
}

// parseHosts parses a list of domain patterns, ports dropped, and gives a key that is equal for equal sets.
func parseHosts(texts []string) (hosts []config.Domain, key string, err error) {
	names := make([]string, 0, len(texts))
	for _, text := range texts {
		d, err := config.ParseDomain(text, config.DomainForm{Port: true})
		if err != nil {
			// A bare IPv6 literal is an entry of the lists without ports alone (CFG-43).
			if d, err = config.ParseDomain(text, config.DomainForm{}); err != nil {
				return nil, "", err
			}
		}
		d.Port = 0
		name := d.Host.Name
		if d.Wildcard {
			name = "*." + name
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
			hosts = append(hosts, d)
		}
	}
	slices.Sort(names)
	return hosts, strings.Join(names, " "), nil
}
