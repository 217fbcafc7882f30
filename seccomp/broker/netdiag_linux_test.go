package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func init() { probes["net-diag"] = func(string) any { return netDiagProbe() } }

// netDiagProbe asks the broker who listens, for all that it listens at.
func netDiagProbe() notes {
	n := notes{}
	listen := func(at string, six bool) {
		family := unix.AF_INET
		if six {
			family = unix.AF_INET6
		}
		fd := inetSocket(family, unix.SOCK_STREAM)
		fatal(unix.Bind(fd, sockaddrFor(family, netip.MustParseAddrPort(at))))
		fatal(unix.Listen(fd, 8))
	}
	listen("127.0.0.1:5001", false)
	listen("0.0.0.0:5002", false)
	listen("[::]:5003", true)
	listen("[::1]:5004", true)
	bound := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	fatal(unix.Bind(bound, sockaddrFor(unix.AF_INET, netip.MustParseAddrPort("127.0.0.1:5005"))))
	for _, at := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		for port := 5001; port <= 5006; port++ {
			family := unix.AF_INET
			if at == "::1" {
				family = unix.AF_INET6
			}
			n.connect(fmt.Sprint(at, " ", port), family, 0, netip.AddrPortFrom(netip.MustParseAddr(at), uint16(port)))
		}
	}
	return n
}

// A loopback destination that the policy allows is the host's exactly where nothing in the sandbox would take the connection: the
// kernel and its list in /proc say so.
func TestNet_WhoListens(t *testing.T) {
	inside := []string{"127.0.0.1 5001", "127.0.0.1 5002", "127.0.0.2 5002", "127.0.0.1 5003", "127.0.0.2 5003", "::1 5003", "::1 5004"}
	for _, none := range []bool{false, true} {
		g := newGate(t)
		g.loopback = atItself(func(netip.AddrPort) bool { return true })
		s := netSetup(t, g, "net-diag")
		var server *Server
		s.server = func(made *Server) { server = made; made.network.diagnosis.none = none }
		want := notes{}
		var judged []netip.AddrPort
		for _, at := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
			for port := uint16(5001); port <= 5006; port++ {
				want[fmt.Sprint(at, " ", port)] = "ok"
				judged = append(judged, netip.AddrPortFrom(netip.MustParseAddr(at), port))
			}
		}
		noFailures(t, runNotes(t, s, want))
		g.sawOnly(t, judged...)
		if len(g.judged) != len(judged)-len(inside) {
			t.Errorf("without sock_diag %v: judged %v", none, g.judged)
		}
		if !none && int(server.network.diagnosis.seq) != len(judged) {
			t.Errorf("the kernel was asked %d times", server.network.diagnosis.seq)
		}
	}
}

func TestParseDiag(t *testing.T) {
	answer := func(kind uint16, seq uint32, rest ...byte) []byte {
		b := make([]byte, unix.SizeofNlMsghdr)
		binary.NativeEndian.PutUint16(b[4:], kind)
		binary.NativeEndian.PutUint32(b[8:], seq)
		return append(b, rest...)
	}
	number := func(errno unix.Errno) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(-int32(errno))) }
	for name, c := range map[string]struct {
		answer    []byte
		yes, mine bool
		err       error
	}{
		"listener":  {answer(diagByFamily, 7, unix.AF_INET, unix.BPF_TCP_LISTEN, 0, 0), true, true, nil},
		"other":     {answer(diagByFamily, 7, unix.AF_INET, unix.BPF_TCP_ESTABLISHED, 0, 0), false, true, nil},
		"earlier":   {answer(diagByFamily, 6, unix.AF_INET, unix.BPF_TCP_LISTEN, 0, 0), false, false, nil},
		"nobody":    {answer(unix.NLMSG_ERROR, 7, number(unix.ENOENT)...), false, true, nil},
		"no module": {answer(unix.NLMSG_ERROR, 7, number(unix.EOPNOTSUPP)...), false, true, unix.EOPNOTSUPP},
		"kind":      {answer(99, 7, 0, 0, 0, 0), false, true, errDiag},
		"short":     {answer(diagByFamily, 7), false, false, errDiag},
		"empty":     {nil, false, false, errDiag},
	} {
		yes, mine, err := parseDiag(c.answer, 7)
		if yes != c.yes || mine != c.mine || !errors.Is(err, c.err) {
			t.Errorf("%s: %v %v %v", name, yes, mine, err)
		}
	}
}
