package credential

import (
	"fmt"
	"slices"

	"github.com/srt-sandbox/srt/runtime/config"
)

// pair is an AWS key whose parts are all masked as a whole and set (CRED-27).
type pair struct {
	id, key *secret // the access key id and the secret access key
	token   *secret // the session token; nil: none
}

// awsDefault are the variables that every AWS SDK reads.
var awsDefault = config.AWSPair{ //nolint:gosec // names, not values
	AccessKeyIDVar: "AWS_ACCESS_KEY_ID", SecretAccessKeyVar: "AWS_SECRET_ACCESS_KEY", SessionTokenVar: "AWS_SESSION_TOKEN",
}

// awsPairs are the pairs of a section: its entries, and the default one unless an entry names one of its variables.
func awsPairs(c *config.Credentials) []config.AWSPair {
	taken := func(p config.AWSPair) bool {
		for _, name := range []string{p.AccessKeyIDVar, p.SecretAccessKeyVar, p.SessionTokenVar} {
			switch name {
			case awsDefault.AccessKeyIDVar, awsDefault.SecretAccessKeyVar, awsDefault.SessionTokenVar:
				return true
			}
		}
		return false
	}
	if slices.ContainsFunc(c.AWSPairs, taken) {
		return c.AWSPairs
	}
	return append(slices.Clone(c.AWSPairs), awsDefault)
}

// recordPairs keeps the pairs of a launch. rules are its masked variables, have the secrets of those that are set.
func (m *Masked) recordPairs(spec Spec, rules map[string]*config.EnvCredential, have map[string]*secret) {
	whole := func(name string) *secret {
		if x := have[name]; x != nil && x.whole {
			return x
		}
		return nil
	}
	for _, names := range awsPairs(spec.Credentials) {
		p := pair{id: whole(names.AccessKeyIDVar), key: whole(names.SecretAccessKeyVar)}
		if names.SessionTokenVar != "" {
			p.token = whole(names.SessionTokenVar)
		}
		switch {
		case p.key != nil && p.id != nil:
			m.store.recordPair(p)
			m.signsAWS = true
		case p.key != nil && !masksWhole(rules[names.AccessKeyIDVar]):
			m.warn(fmt.Sprintf("credentials.envVars masks %s but not %s, so AWS requests are signed with the fake and "+
				"fail; mask both as a whole", names.SecretAccessKeyVar, names.AccessKeyIDVar))
		}
	}
}

// masksWhole reports whether a rule masks the whole of a variable.
func masksWhole(rule *config.EnvCredential) bool {
	return rule != nil && rule.Extract == "" && rule.Decode == ""
}

// recordPair makes p the newest pair. What an earlier launch gave the same key id is replaced: the variables are the same.
func (s *Store) recordPair(p pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(s.pairs), func(q pair) bool { return q.id == p.id })
	s.pairs = append([]pair{p}, rest...)
}

// pairsAt returns the pairs whose key id may be sent to a host (CRED-28), the newest first. No two have one key id.
func (s *Store) pairsAt(host config.Host) []pair {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []pair
	for _, p := range s.pairs {
		if p.id.injectable(host) {
			list = append(list, p)
		}
	}
	return list
}
