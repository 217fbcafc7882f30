package ns

import (
	"testing"

	"golang.org/x/sys/unix"
)

// confined is the least that starts a command without namespaces.
func confined(p *Program, args ...string) *launch {
	l := minimal(p, args...)
	l.Config = Config{Confined: true}
	if err := p.ConfineCapabilities(keeps()); err != nil {
		panic(err)
	}
	p.RestrictCommand(scopeRuleset(p))
	return l
}

// scopeRuleset appends the making of a ruleset that scopes signals.
func scopeRuleset(p *Program) Slot {
	attr := [3]uint64{2: unix.LANDLOCK_SCOPE_SIGNAL}
	return p.Call("make the ruleset", "", unix.SYS_LANDLOCK_CREATE_RULESET, Pointer(p, &attr), Int(24), Int(0))
}

func TestConfined(t *testing.T) {
	out, st, err := run(t, confined(newProgram(t), "/bin/sh", "-c", "ps -ef | tail -8; sleep 100 & setsid sleep 100 & echo hello; kill -9 $PPID; exit 3"))
	t.Logf("%s %v %v", out, st, err)
}
