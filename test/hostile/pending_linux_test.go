package hostile

import (
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// TestNET3_PendingSockets: games with a socket that is dialled for, and with the sandbox's own ports of captured
// connections, lead nowhere and take nothing from others.
func TestNET3_PendingSockets(t *testing.T) {
	w := newWorld(t)
	const silent = "10.203.9.9"
	must(t, w.blackhole(silent))
	stage.Each(t, func(s *stage.Stage) {
		w.silent(s.T, func() {
			r := w.run(s, rules{Allow: []string{good + ":7", silent}}, "/usr/bin/python3", w.dir+"/pending.py")
			wantLines(s.T, r, pendingGames)
			if r.Stderr != "" {
				s.T.Logf("srt said:\n%.2000s", r.Stderr)
			}
		}, good+":7", silent+":7")
	})
}

const pendingGames = `before 10.203.1.1:7
transparent EPERM
repair EPERM
mark EPERM
to device ok
bind EINVAL
bind elsewhere EADDRNOTAVAIL
listen EINVAL
again EALREADY
elsewhere EALREADY
to the waiting room ECONNREFUSED
send EAGAIN
peer ENOTCONN
IPV6_ADDRFORM 10.203.1.1:7
dissolved, and to another 10.203.1.1:7
dissolved, and to a bad one EACCES
disconnected, and to a bad one ('10.203.1.1:7', 'EACCES')
a range of ports False
squatted, and nothing came True
200 with thieves beside them (200, 0)
beside 600 that wait 10.203.1.1:7
after them 10.203.1.1:7
`
