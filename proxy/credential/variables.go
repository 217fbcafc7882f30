package credential

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/srt-sandbox/srt/runtime/config"
)

// maskVariables makes the fakes of the variables that are set, lists what must not be there, and records the AWS keys.
func (m *Masked) maskVariables(spec Spec) error {
	rules := make(map[string]*config.EnvCredential, len(spec.Credentials.EnvVars))
	denied := make(map[string]bool)
	for i := range spec.Credentials.EnvVars {
		if v := &spec.Credentials.EnvVars[i]; v.Mode == config.ModeMask {
			rules[v.Name] = v // of two masks the last counts, as for files (FS-58)
		} else {
			denied[v.Name] = true
		}
	}
	have := make(map[string]*secret) // the first secret of each masked variable that is set
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		value, ok := "", false
		if spec.LookupEnv != nil {
			value, ok = spec.LookupEnv(name)
		}
		if !ok {
			m.debug(fmt.Sprintf("credentials.envVars entry %q: the variable is not set, nothing to mask (CRED-4)", name))
			continue
		}
		v, x, err := m.maskVariable(rules[name], value, spec)
		switch {
		case err != nil:
			return err
		case x != nil:
			have[name] = x
		case !v.Unset:
			continue // it holds nothing to mask; an entry that denies it still counts
		}
		delete(denied, name) // CRED-4: listed as both, it is masked
		m.variables = append(m.variables, v)
	}
	for _, name := range slices.Sorted(maps.Keys(denied)) {
		m.variables = append(m.variables, Variable{Name: name, Unset: true})
	}
	m.recordPairs(spec, rules, have)
	return nil
}

// maskVariable makes the fake of a variable. Without a secret, the variable is to be unset or holds nothing to mask.
func (m *Masked) maskVariable(rule *config.EnvCredential, value string, spec Spec) (Variable, *secret, error) {
	v := Variable{Name: rule.Name}
	e, err := m.store.prepare(sourceVariable, fmt.Sprintf("credentials.envVars entry %q", rule.Name), rule.Credential, spec)
	if err != nil {
		return v, nil, err
	}
	memory, err := newScratch(len(value))
	if err != nil {
		return v, nil, &EntryError{Entry: e.label, Err: err}
	}
	defer memory.release()
	text := memory.mapping[:copy(memory.mapping, value)]
	if e.program != nil && !utf8.Valid(text) {
		m.warn(e.label + " has an extract pattern, but the variable is not UTF-8 text; the command runs without it")
		v.Unset = true
		return v, nil, nil
	}
	made, err := e.fakeOf(m.store, m.store.variableSource(rule.Name, text, spec.OwnEnv), text, time.Now().Add(searchTime))
	switch {
	case err == errNothing: //nolint:errorlint // never wrapped
		v.Unset, err = e.nothing(m.warn)
		return v, nil, err
	case hides(err):
		m.warn(e.label + " cannot be masked (" + err.Error() + "); the command runs without it")
		v.Unset = true
		return v, nil, nil
	case err != nil:
		return v, nil, e.explain(err)
	}
	v.Value = string(made.fake)
	return v, made.first, nil
}

// variableSource says where the value of a variable is from. Of launches with environments of their own every value is a source.
func (s *Store) variableSource(name string, value []byte, own bool) string {
	if !own {
		return "env " + name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	return fmt.Sprintf("env %s %x", name, maphash.Bytes(s.seed, value))
}

// File returns the content that a command sees in place of a file: of the entry at index in credentials.files, at its
// location, an absolute path without links. The file is read now, once (CRED-11), and may be as large as 16 MiB.
//
// An error that matches ErrHide or EACCES means that the file must be hidden and says why in one clause; one that matches
// ErrLeave, that it stays as it is; every other one ends the launch and is an *EntryError, or ErrClosed.
func (m *Masked) File(index int, location string) ([]byte, error) {
	if index < 0 || index >= len(m.files) || m.files[index] == nil {
		return nil, &hideError{"it is not masked by this launch"}
	}
	e := m.files[index]
	memory, text, err := readSource(location)
	switch {
	case hides(err):
		return nil, err
	case err != nil:
		return nil, &EntryError{Entry: e.label, Err: err}
	}
	defer memory.release()
	if !utf8.Valid(text) {
		return nil, &hideError{"it is not UTF-8 text"}
	}
	made, err := e.fakeOf(m.store, "file "+location, text, time.Now().Add(searchTime))
	switch {
	case err == errNothing: //nolint:errorlint // never wrapped
		hide, err := e.nothing(m.warn)
		switch {
		case err != nil:
			return nil, err
		case hide:
			return nil, &hideError{"nothing to mask was found in it"}
		}
		return nil, ErrLeave
	case hides(err):
		return nil, err
	case err != nil:
		return nil, e.explain(err)
	}
	return made.fake, nil
}
