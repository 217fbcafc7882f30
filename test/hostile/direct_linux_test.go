package hostile

import (
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// TestNET81_DirectWaysOut: NET-3, NET-80, NET-81 and the limits of the reference about UDP and addressed sends. There is
// nothing to be had but what the settings allow: each call fails, at once and with an error that a program understands.
func TestNET81_DirectWaysOut(t *testing.T) {
	w := newWorld(t)
	stage.Each(t, func(s *stage.Stage) {
		w.silent(s.T, func() {
			r := w.run(s, rules{Allow: []string{good + ":7", goodName + ":7"}}, "/usr/bin/python3", w.dir+"/direct.py")
			want := ""
			for _, family := range []string{"4", "6", "6m"} {
				want += strings.ReplaceAll(perFamily, "F ", family+" ")
			}
			wantLines(s.T, r, want+directly)
		})
	})
}

// perFamily is what a program is told for IPv4, IPv6 and IPv4 in IPv6.
const perFamily = `F connect EACCES
F connect non-blocking EACCES
F fast open connect EACCES
F fast open sendto ENOTSUP
F fast open sendmsg ENOTSUP
F fast open sendmmsg ENOTSUP
F udp connect EACCES
F udp sendto EACCES
F udp sendmsg EACCES
F udp by lo alone ok
F udp sendmmsg EACCES
F udp sendto of a connected one EACCES
F from an address of theirs EACCES
`

// directly is what it is told of all else.
const directly = `mark EPERM
transparent EPERM
repair EPERM
bound to lo EACCES
unicast interface EACCES
source route EPERM
routing header EINVAL
don't route ENETUNREACH
broadcast EACCES
multicast EACCES
multicast 6 EACCES
link-local 6 EACCES
link-local 6 tcp EACCES
host's side EACCES
metadata EACCES
a route EPERM
no route EPERM
an address EPERM
a link EPERM
lo down EPERM
raw EPERM
raw udp EPERM
raw any EPERM
raw 6 EPERM
old packet EPERM
packet EPERM
packet dgram EPERM
sctp EPROTONOSUPPORT
sctp seqpacket EPROTONOSUPPORT
mptcp EPROTONOSUPPORT
mptcp 6 EPROTONOSUPPORT
dccp EPROTONOSUPPORT
udp-lite EPROTONOSUPPORT
udp-lite 6 EPROTONOSUPPORT
l2tp EPROTONOSUPPORT
smc EAFNOSUPPORT
vsock EPERM
vsock dgram EPERM
generic netlink EPROTONOSUPPORT
netfilter EPROTONOSUPPORT
xfrm EPROTONOSUPPORT
audit EPROTONOSUPPORT
connector EPROTONOSUPPORT
alg EAFNOSUPPORT
bluetooth EAFNOSUPPORT
can EAFNOSUPPORT
tipc EAFNOSUPPORT
xdp EAFNOSUPPORT
qipcrtr EAFNOSUPPORT
kcm EAFNOSUPPORT
rds EAFNOSUPPORT
ax25 EAFNOSUPPORT
x25 EAFNOSUPPORT
ieee802154 EAFNOSUPPORT
key EAFNOSUPPORT
caif EAFNOSUPPORT
unix dgram EPERM
unix raw EPERM
high bits EPERM
unix dgram pair EPERM
ping refused
ping 6 refused
io_uring EPERM
io_uring enter EPERM
new network EPERM
new user and network EPERM
`
