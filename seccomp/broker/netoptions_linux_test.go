package broker

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

func sorted(list []string) { slices.Sort(list) }

func boundSituation(r *netRecorder, family int, live, dead, _ netip.AddrPort) {
	places := []string{"127.0.0.1", "0.0.0.0"}
	if family == unix.AF_INET6 && live.Addr().Is6() {
		places = []string{"::1", "::"}
	} else if family == unix.AF_INET6 {
		places = []string{"127.0.0.1", "::"}
	}
	for _, at := range places {
		for _, mode := range []int{0, unix.SOCK_NONBLOCK} {
			fd := r.socket(family, unix.SOCK_STREAM|mode)
			r.check(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
			to := netip.AddrPortFrom(netip.MustParseAddr(at), freePort(family))
			r.err("bind", unix.Bind(fd, sockaddrFor(family, to)))
			r.connect("dead", fd, family, dead)
			if mode != 0 {
				r.events(fd, true)
				r.connect("dead", fd, family, dead)
			}
			r.connect("live", fd, family, live)
			r.events(fd, true)
			r.state(fd)
			after, err := unix.Getsockname(fd)
			r.check(err)
			r.say("port kept: %t", to.Port() == addrOf(after).Port())
			r.echo(fd)
			r.check(unix.Close(fd))
		}
	}
}

// freePort is a port that nobody has.
func freePort(family int) uint16 {
	fd := inetSocket(family, unix.SOCK_STREAM)
	defer unix.Close(fd)
	fatal(unix.Bind(fd, sockaddrFor(family, netip.AddrPortFrom(netip.IPv4Unspecified(), 0))))
	a, err := unix.Getsockname(fd)
	fatal(err)
	return addrOf(a).Port()
}

func optionsSituation(r *netRecorder, family int, live, _, _ netip.AddrPort) {
	for _, mode := range []int{0, unix.SOCK_NONBLOCK} {
		fd := r.socket(family, unix.SOCK_STREAM|mode)
		options := [][2]int{{unix.SOL_SOCKET, unix.SO_KEEPALIVE}, {unix.IPPROTO_TCP, unix.TCP_NODELAY}, {unix.SOL_SOCKET, unix.SO_REUSEADDR},
			{unix.SOL_SOCKET, unix.SO_REUSEPORT}, {unix.IPPROTO_TCP, unix.TCP_CORK}, {unix.SOL_SOCKET, unix.SO_OOBINLINE}}
		for _, o := range options {
			r.check(unix.SetsockoptInt(fd, o[0], o[1], 1))
		}
		r.check(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 77))
		r.connect("live", fd, family, live)
		r.events(fd, true)
		for _, o := range append(options, [2]int{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}) {
			v, err := unix.GetsockoptInt(fd, o[0], o[1])
			r.check(err)
			r.say("option %d: %d", o[1], v)
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		r.check(err)
		r.say("flags %#x", flags)
		r.check(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_CORK, 0))
		r.echo(fd)
		r.check(unix.Close(fd))
	}
}

func halfCloseSituation(r *netRecorder, family int, live, _, _ netip.AddrPort) {
	for _, mode := range []int{0, unix.SOCK_NONBLOCK} {
		fd := r.socket(family, unix.SOCK_STREAM|mode)
		r.connect("live", fd, family, live)
		pollFor(fd, unix.POLLOUT)
		_, err := unix.Write(fd, []byte("last words"))
		r.err("write", err)
		r.err("shutdown", unix.Shutdown(fd, unix.SHUT_WR))
		r.err("read", reads(fd, "last words"))
		pollFor(fd, unix.POLLIN)
		n, err := unix.Read(fd, make([]byte, 1))
		r.err("read", err)
		r.say("  %d", n)
		_, err = unix.Write(fd, []byte("more"))
		r.err("write", err)
		r.check(unix.Close(fd))
	}
}

// copiesSituation connects descriptors that stand for the same socket.
func copiesSituation(r *netRecorder, family int, live, dead, _ netip.AddrPort) {
	fd := r.socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	other, err := unix.Dup(fd)
	r.check(err)
	r.connect("live", fd, family, live)
	r.check(unix.Close(fd))
	r.events(other, true)
	r.state(other)
	r.echo(other)
	r.connect("live", other, family, live)
	r.check(unix.Close(other))

	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	r.check(err)
	for _, to := range []netip.AddrPort{live, dead} {
		fd = r.socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
		r.connect("one", fd, family, to)
		r.err("send", unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0))
		r.check(unix.Close(fd))
		oob := make([]byte, unix.CmsgSpace(4))
		_, n, _, _, err := unix.Recvmsg(pair[1], make([]byte, 1), oob, 0)
		r.err("receive", err)
		messages, err := unix.ParseSocketControlMessage(oob[:n])
		r.check(err)
		rights, err := unix.ParseUnixRights(&messages[0])
		r.check(err)
		r.events(rights[0], true)
		r.trouble(rights[0])
		r.check(unix.Close(rights[0]))
	}
	r.check(unix.Close(pair[0]))
	r.check(unix.Close(pair[1]))
}

// epollSituation registers a socket before and after its connect, level- and edge-triggered.
func epollSituation(r *netRecorder, family int, live, dead, silent netip.AddrPort) {
	for name, to := range map[string]netip.AddrPort{"live": live, "dead": dead} {
		for _, before := range []bool{true, false} {
			for _, edge := range []uint32{0, unix.EPOLLET} {
				r.lines = append(r.lines, r.epoll(family, to, before, edge, name))
			}
		}
	}
	sorted(r.lines)
	_ = silent
}

func (r *netRecorder) epoll(family int, to netip.AddrPort, before bool, edge uint32, name string) string {
	sub := &netRecorder{p: r.p}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	sub.check(err)
	defer unix.Close(ep)
	fd := sub.socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	defer unix.Close(fd)
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | edge, Fd: int32(fd)}
	if before {
		sub.err("add", unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &event))
	}
	sub.connect(name, fd, family, to)
	if !before {
		sub.err("add", unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &event))
	}
	got := make([]unix.EpollEvent, 4)
	for {
		n, err := unix.EpollWait(ep, got, 20_000)
		if err == unix.EINTR {
			continue
		}
		sub.err("wait", err)
		sub.say("  %d %#x", n, telling(int16(got[0].Events)))
		break
	}
	sub.trouble(fd)
	if name != "dead" || edge == 0 { // after a failure a second edge may come
		n, err := unix.EpollWait(ep, got, 0)
		sub.err("wait again", err)
		sub.say("  %d", n)
	}
	text := name
	for _, l := range append([]string{"", ""}, sub.lines...) {
		text += "|" + l
	}
	return text
}

func selectSituation(r *netRecorder, family int, live, dead, _ netip.AddrPort) {
	for _, to := range []netip.AddrPort{live, dead} {
		fd := r.socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
		r.connect("one", fd, family, to)
		for {
			var in, out unix.FdSet
			in.Set(fd)
			out.Set(fd)
			n, err := unix.Select(fd+1, &in, &out, nil, &unix.Timeval{Sec: 20})
			if err == unix.EINTR {
				continue
			}
			r.err("select", err)
			r.say("  %t, out %t", n > 0, out.IsSet(fd))
			break
		}
		r.trouble(fd)
		r.check(unix.Close(fd))
	}
}

func portZeroSituation(r *netRecorder, family int, live, _, _ netip.AddrPort) {
	fd := r.socket(family, unix.SOCK_STREAM)
	r.connect("port 0", fd, family, netip.AddrPortFrom(live.Addr(), 0))
	r.trouble(fd)
	r.connect("live", fd, family, live)
	r.check(unix.Close(fd))
}
