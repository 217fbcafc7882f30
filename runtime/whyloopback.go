package runtime

// What becomes of a destination on loopback (NET-3, NET-85): programs connect to it by themselves, since NO_PROXY names it,
// and inside it is the sandbox's own.
const (
	noteOwnFirst = "a command has a loopback of its own: where one of its programs listens on that port, it is reached, whatever the settings say"
	noteElseHost = noteOwnFirst + "; only else is it the host's"
	noteNobody   = noteOwnFirst + `; else a program that connects by itself sees "connection refused", and that is not reported`
	noteSpelling = "the proxy goes by the spelling, and refuses this one; most programs connect by themselves, because NO_PROXY names localhost, " +
		"and then an entry for localhost is one for 127.0.0.1 and ::1, and the other way round"
	noteOnlyProxy = "only by the proxy, which most programs do not ask for it, because NO_PROXY names localhost; connections of programs " +
		"cannot be captured here: "
)

// noteLoopback says of a destination on loopback who is reached, and by which way. byProxy is what a program is told that
// puts it to the proxy all the same; uncaptured is why connections are not captured, nil if they are.
func (v *Verdict) noteLoopback(byProxy bool, uncaptured error) {
	switch {
	case !v.Allowed:
		v.Notes = append(v.Notes, noteNobody)
		return
	case uncaptured != nil:
		v.Notes = append(v.Notes, noteOnlyProxy+uncaptured.Error())
		return
	}
	v.Notes = append(v.Notes, noteElseHost)
	if !byProxy {
		v.Notes = append(v.Notes, noteSpelling)
	}
}
