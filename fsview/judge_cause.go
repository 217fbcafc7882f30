package fsview

import (
	"strings"
	"sync"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// causes take the texts apart that a plan gives as reasons (rule.why). Which entry stands behind a rule is looked for when
// first asked: a start that nothing is refused in does not pay for it.
type causes struct {
	plan *Plan
	once sync.Once
	text map[string]string // entries as written, by their place in the settings
}

// split gives the place in the settings or the name behind a rule, and the entry there.
func (c *causes) split(why string) (rule, entry string) {
	rule = why
	for _, mark := range [...]string{" (FS-", " (NET-", " (CLI-", " (TLS-"} {
		if i := strings.LastIndex(rule, mark); i > 0 {
			rule = rule[:i]
			break
		}
	}
	c.once.Do(c.read)
	return rule, c.text[rule]
}

func (c *causes) read() {
	r := &c.plan.Rules
	lists := [...][]policy.PathRule{r.DenyRead, r.AllowRead, r.AllowWrite, r.DenyWrite, r.CredentialDeny, c.plan.Masks}
	count := 0
	for _, l := range lists {
		count += len(l)
	}
	c.text = make(map[string]string, count)
	for _, l := range lists {
		for i := range l {
			c.text[l[i].Key] = l[i].Entry
		}
	}
}
