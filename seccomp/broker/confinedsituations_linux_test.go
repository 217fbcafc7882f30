package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

// confinedSituation is what a probe does and what comes of it.
type confinedSituation struct {
	do      func(*confinedProbe) string
	want    string
	unbound string // without allowLocalBinding, if that is another
	made    string // where the sockets are made by srt, if that is another
}

type confinedProbe struct {
	folder string
	host   confinedHost
}

func init() {
	probes["confined-net"] = func(folder string) any {
		p := &confinedProbe{folder: folder}
		text, err := os.ReadFile(filepath.Join(folder, "host.json"))
		fatal(err)
		fatal(json.Unmarshal(text, &p.host))
		got := map[string]string{}
		for name, s := range confinedSituations {
			got[name] = s.do(p)
		}
		return got
	}
}

func (p *confinedProbe) at(ip string, port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(port))
}

func (p *confinedProbe) proxy() netip.AddrPort { return p.at("127.0.0.1", p.host.Proxy) }
func (p *confinedProbe) other() netip.AddrPort { return p.at("127.0.0.1", p.host.Other) }

// said is an error for the table.
func said(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// try connects a new socket and tells what came of it; for success an echo is needed.
func try(family, flags int, a netip.AddrPort, before func(fd int)) string {
	fd := inetSocket(family, unix.SOCK_STREAM|flags)
	defer unix.Close(fd)
	if before != nil {
		before(fd)
	}
	return finishTry(fd, connectTo(fd, family, a))
}

func finishTry(fd int, err error) string {
	if errors.Is(err, unix.EINPROGRESS) {
		pollFor(fd, unix.POLLOUT)
		if e := sockError(fd); e != "none" {
			return e
		}
		err = nil
	}
	if err == nil {
		err = echoes(fd, "hello")
	}
	return said(err)
}

// serveOnce accepts one connection and sends back what it says first.
func serveOnce(fd int) {
	go func() {
		for {
			c, _, err := unix.Accept(fd)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return
			}
			buf := make([]byte, 5)
			n, _ := unix.Read(c, buf)
			_, _ = unix.Write(c, buf[:max(n, 0)])
			unix.Close(c)
		}
	}()
}

// bound makes a listener at an address, and says where it is.
func bound(family int, a netip.AddrPort, before func(fd int)) (fd int, at string, port int, err error) {
	fd = inetSocket(family, unix.SOCK_STREAM)
	if before != nil {
		before(fd)
	}
	if a.IsValid() {
		if err := unix.Bind(fd, sockaddrFor(family, a)); err != nil {
			unix.Close(fd)
			return -1, "", 0, err
		}
	}
	if err := unix.Listen(fd, 16); err != nil {
		unix.Close(fd)
		return -1, "", 0, err
	}
	sa, err := unix.Getsockname(fd)
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		at, port = netip.AddrFrom4(sa.Addr).String(), sa.Port
	case *unix.SockaddrInet6:
		at, port = netip.AddrFrom16(sa.Addr).String(), sa.Port
	}
	serveOnce(fd)
	return fd, at, port, err
}

// own has a listener, and connects to it at another address.
func own(family int, a netip.AddrPort, toFamily int, to string, before func(fd int)) func(*confinedProbe) string {
	return func(p *confinedProbe) string {
		fd, at, port, err := bound(family, a, before)
		if err != nil {
			return said(err)
		}
		defer unix.Close(fd)
		return at + " " + try(toFamily, 0, p.at(to, port), nil)
	}
}

func setInt(level, option, value int) func(fd int) {
	return func(fd int) { fatal(unix.SetsockoptInt(fd, level, option, value)) }
}

var v6only = setInt(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
var v6both = setInt(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)

func makes(domain, kind, protocol int) func(*confinedProbe) string {
	return func(*confinedProbe) string {
		fd, err := unix.Socket(domain, kind, protocol)
		if err == nil {
			unix.Close(fd)
		}
		return said(err)
	}
}

func sets(family, level, option int, value []byte) func(*confinedProbe) string {
	return func(*confinedProbe) string {
		fd := inetSocket(family, unix.SOCK_STREAM)
		defer unix.Close(fd)
		return said(unix.SetsockoptString(fd, level, option, string(value)))
	}
}

var any4, any6 = netip.MustParseAddrPort("0.0.0.0:0"), netip.MustParseAddrPort("[::]:0")

var confinedSituations = map[string]confinedSituation{
	"proxy":             {do: func(p *confinedProbe) string { return try(unix.AF_INET, 0, p.proxy(), nil) }, want: "ok"},
	"proxy, no waiting": {do: func(p *confinedProbe) string { return try(unix.AF_INET, unix.SOCK_NONBLOCK, p.proxy(), nil) }, want: "ok"},
	"proxy, epoll":      {do: throughEpoll, want: "ok"},
	"proxy, v4-mapped": {do: func(p *confinedProbe) string {
		return try(unix.AF_INET6, 0, p.at("::ffff:127.0.0.1", p.host.Proxy), v6both)
	}, want: "ok"},
	"proxy, v6 only": {do: func(p *confinedProbe) string {
		return try(unix.AF_INET6, 0, p.at("::ffff:127.0.0.1", p.host.Proxy), v6only)
	}, want: "ENETUNREACH"},
	"proxy, unspecified": {do: func(p *confinedProbe) string { return try(unix.AF_INET, 0, p.at("0.0.0.0", p.host.Proxy), nil) }, want: "ok"},
	"proxy, fast open": {do: func(p *confinedProbe) string {
		return try(unix.AF_INET, 0, p.proxy(), setInt(unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1))
	}, want: "ok"},
	"proxy, at ::1":     {do: func(p *confinedProbe) string { return try(unix.AF_INET6, 0, p.at("::1", p.host.Proxy), nil) }, want: "ECONNREFUSED"},
	"proxy, passed on":  {do: passedOn, want: "ok"},
	"proxy, duplicated": {do: duplicated, want: "ok"},
	"other":             {do: func(p *confinedProbe) string { return try(unix.AF_INET, 0, p.other(), nil) }, want: "ECONNREFUSED"},
	"other, fast open": {do: func(p *confinedProbe) string {
		return try(unix.AF_INET, 0, p.other(), setInt(unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1))
	}, want: "ECONNREFUSED"},
	"other, v4-mapped": {do: func(p *confinedProbe) string {
		return try(unix.AF_INET6, unix.SOCK_NONBLOCK, p.at("::ffff:127.0.0.1", p.host.Other), v6both)
	}, want: "ECONNREFUSED"},
	"other, sent to":      {do: sentTo(0), want: "EPIPE"},
	"other, sent at once": {do: sentTo(unix.MSG_FASTOPEN), want: "ENOTSUP"},
	"other, swapped":      {do: swapped, want: "ok"},
	"beyond":              {do: func(p *confinedProbe) string { return try(unix.AF_INET, 0, p.at("192.0.2.1", 80), nil) }, want: "EACCES"},
	"beyond, v6": {do: func(p *confinedProbe) string {
		return try(unix.AF_INET6, unix.SOCK_NONBLOCK, p.at("2001:db8::1", 443), nil)
	}, want: "EACCES"},
	"dissolved":           {do: dissolved, want: "ok, ECONNREFUSED, ok", made: "EISCONN, EISCONN, EISCONN"},
	"accepted, dissolved": {do: acceptedDissolved, want: "ok, ECONNREFUSED", unbound: "EACCES", made: "EISCONN, EISCONN"},

	"own":                    {do: own(unix.AF_INET, netip.MustParseAddrPort("127.0.0.1:0"), unix.AF_INET, "127.0.0.1", nil), want: "127.0.0.1 ok", unbound: "EACCES"},
	"own, every address":     {do: own(unix.AF_INET, any4, unix.AF_INET, "127.0.0.1", nil), want: "127.0.0.1 ok", unbound: "EACCES"},
	"own, every v6":          {do: own(unix.AF_INET6, any6, unix.AF_INET, "127.0.0.1", v6both), want: "::ffff:127.0.0.1 ok", unbound: "EACCES"},
	"own, every v6, at ::1":  {do: own(unix.AF_INET6, any6, unix.AF_INET6, "::1", v6both), want: "::ffff:127.0.0.1 ok", unbound: "EACCES"},
	"own, v6 only":           {do: own(unix.AF_INET6, any6, unix.AF_INET6, "::1", v6only), want: "::1 ok", unbound: "EACCES"},
	"own, v6 only, at v4":    {do: own(unix.AF_INET6, any6, unix.AF_INET, "127.0.0.1", v6only), want: "::1 ECONNREFUSED", unbound: "EACCES"},
	"own, never bound":       {do: own(unix.AF_INET, netip.AddrPort{}, unix.AF_INET, "127.0.0.1", nil), want: "127.0.0.1 ok", unbound: "EACCES"},
	"own, never bound, v6":   {do: own(unix.AF_INET6, netip.AddrPort{}, unix.AF_INET6, "::ffff:127.0.0.1", v6both), want: "::ffff:127.0.0.1 ok", unbound: "EACCES"},
	"own, at another 127":    {do: own(unix.AF_INET, any4, unix.AF_INET, "127.0.0.2", nil), want: "127.0.0.1 ECONNREFUSED", unbound: "EACCES"},
	"own, beyond":            {do: own(unix.AF_INET, netip.MustParseAddrPort("192.0.2.1:0"), unix.AF_INET, "127.0.0.1", nil), want: "EACCES"},
	"own, of the host":       {do: func(p *confinedProbe) string { return own(unix.AF_INET, p.other(), unix.AF_INET, "127.0.0.1", nil)(p) }, want: "EADDRINUSE", unbound: "EACCES"},
	"own, closed":            {do: closedThenHosts, want: "ECONNREFUSED", unbound: "EACCES"},
	"own, bound again":       {do: boundAgain, want: "ok", unbound: "EACCES"},
	"own, address of unspec": {do: bindUnspec, want: "127.0.0.1", unbound: "EACCES"},

	"UDP":              {do: makes(unix.AF_INET, unix.SOCK_DGRAM, 0), want: "EPERM"},
	"UDP, v6":          {do: makes(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 17), want: "EPERM"},
	"ping":             {do: makes(unix.AF_INET, unix.SOCK_DGRAM, 1), want: "EPERM"},
	"raw":              {do: makes(unix.AF_INET, unix.SOCK_RAW, 6), want: "EPERM"},
	"MPTCP":            {do: makes(unix.AF_INET, unix.SOCK_STREAM, 262), want: "EPROTONOSUPPORT"},
	"netlink":          {do: netlinkBound, want: "ok"},
	"netlink, sockets": {do: makes(unix.AF_NETLINK, unix.SOCK_RAW, 4), want: "EPERM"},
	"vsock":            {do: makes(unix.AF_VSOCK, unix.SOCK_STREAM, 0), want: "EPERM"},
	"unix datagram":    {do: makes(unix.AF_UNIX, unix.SOCK_DGRAM, 0), want: "EPERM"},

	"device":              {do: sets(unix.AF_INET, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, []byte("lo")), want: "EPERM"},
	"source route":        {do: sets(unix.AF_INET, unix.IPPROTO_IP, unix.IP_OPTIONS, []byte{0x83, 7, 4, 192, 0, 2, 1, 0}), want: "EPERM"},
	"routing header":      {do: sets(unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_RTHDR, make([]byte, 24)), want: "EPERM"},
	"port shared":         {do: sets(unix.AF_INET, unix.SOL_SOCKET, unix.SO_REUSEPORT, []byte{1, 0, 0, 0}), want: "ENOTSUP"},
	"unix, own":           {do: unixOwn, want: "ok"},
	"unix, of the host":   {do: func(p *confinedProbe) string { return unixTo(filepath.Join(p.folder, "host.sock")) }, want: "EACCES"},
	"unix, abstract":      {do: func(*confinedProbe) string { return unixTo("@nobody") }, want: "ECONNREFUSED"},
	"unix, bind abstract": {do: bindUnix("@mine"), want: "EACCES"},
	"unix, bind to none":  {do: bindUnix(""), want: "EACCES"},
	"unix, pair":          {do: unixPair, want: "EACCES", made: "EISCONN"},
}

func throughEpoll(p *confinedProbe) string {
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	defer unix.Close(fd)
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	fatal(err)
	defer unix.Close(ep)
	fatal(unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLOUT | unix.EPOLLET}))
	if err := connectTo(fd, unix.AF_INET, p.proxy()); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return said(err)
	}
	events := make([]unix.EpollEvent, 4)
	for {
		n, err := unix.EpollWait(ep, events, 20_000)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		fatal(err)
		if n == 0 {
			return "no event"
		}
		if events[0].Events&unix.EPOLLHUP == 0 {
			return finishTry(fd, nil)
		}
	}
}

// passedOn connects a socket that has come over a pair, as from another process.
func passedOn(p *confinedProbe) string {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	fatal(err)
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	fatal(unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(fd), nil, 0))
	unix.Close(fd)
	oob := make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(pair[1], make([]byte, 1), oob, 0)
	fatal(err)
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	fatal(err)
	fds, err := unix.ParseUnixRights(&messages[0])
	fatal(err)
	defer unix.Close(fds[0])
	return finishTry(fds[0], connectTo(fds[0], unix.AF_INET, p.proxy()))
}

func duplicated(p *confinedProbe) string {
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	copied, err := unix.Dup(fd)
	fatal(err)
	defer unix.Close(fd)
	defer unix.Close(copied)
	if err := connectTo(copied, unix.AF_INET, p.proxy()); err != nil {
		return said(err)
	}
	return finishTry(fd, nil)
}

func sentTo(flags int) func(p *confinedProbe) string {
	return func(p *confinedProbe) string {
		fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
		defer unix.Close(fd)
		return said(unix.Sendto(fd, []byte("hello"), flags|unix.MSG_NOSIGNAL, sockaddrFor(unix.AF_INET, p.other())))
	}
}

// swapped has another thread change the address all the time.
func swapped(p *confinedProbe) string {
	proxy, other := socket.Address(unix.AF_INET, p.proxy()), socket.Address(unix.AF_INET, p.other())
	address := make([]byte, len(proxy))
	var stop atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		for i := 0; !stop.Load(); i++ {
			copy(address, [][]byte{proxy, other}[i%2])
		}
	})
	defer wait.Wait()
	defer stop.Store(true)
	for range 200 {
		fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
		socket.Connect(fd, address)
		unix.Close(fd)
	}
	return "ok"
}

// dissolve is connect(2) with AF_UNSPEC.
func dissolve(fd int) error {
	if errno := socket.Connect(fd, socket.Unspecified()); errno != 0 {
		return errno
	}
	return nil
}

// bindUnspec binds to an address of AF_UNSPEC, which bind takes for one of AF_INET (ip(7)).
func bindUnspec(*confinedProbe) string {
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	defer unix.Close(fd)
	if errno := socket.Bind(fd, make([]byte, unix.SizeofSockaddrInet4)); errno != 0 {
		return said(errno)
	}
	local, err := socket.Local(fd)
	fatal(err)
	return local.Addr().String()
}

func dissolved(p *confinedProbe) string {
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	defer unix.Close(fd)
	fatal(connectTo(fd, unix.AF_INET, p.proxy()))
	first := said(dissolve(fd))
	second := said(connectTo(fd, unix.AF_INET, p.other()))
	if third := connectTo(fd, unix.AF_INET, p.proxy()); third != nil {
		return first + ", " + second + ", " + said(third)
	}
	return first + ", " + second + ", " + finishTry(fd, nil)
}

func acceptedDissolved(p *confinedProbe) string {
	l := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	defer unix.Close(l)
	if err := unix.Bind(l, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return said(err)
	}
	fatal(unix.Listen(l, 1))
	sa, err := unix.Getsockname(l)
	fatal(err)
	c := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	defer unix.Close(c)
	fatal(unix.Connect(c, sa))
	fd, _, err := unix.Accept(l)
	fatal(err)
	defer unix.Close(fd)
	return said(dissolve(fd)) + ", " + said(connectTo(fd, unix.AF_INET, p.other()))
}

// closedThenHosts connects to where it has listened, and where a server of the host's listens now.
func closedThenHosts(p *confinedProbe) string {
	fd, _, port, err := bound(unix.AF_INET, any4, setInt(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)) // as the host's server: no TIME-WAIT keeps that off
	if err != nil {
		return said(err)
	}
	if got := try(unix.AF_INET, 0, p.at("127.0.0.1", port), nil); got != "ok" {
		return "before: " + got
	}
	unix.Shutdown(fd, unix.SHUT_RD) // which ends the accept that waits
	unix.Close(fd)
	fatal(os.WriteFile(filepath.Join(p.folder, "free.tmp"), fmt.Appendf(nil, "%d", port), 0o644))
	fatal(os.Rename(filepath.Join(p.folder, "free.tmp"), filepath.Join(p.folder, "free")))
	for range 2000 {
		if _, err := os.Stat(filepath.Join(p.folder, "taken")); err == nil {
			return try(unix.AF_INET, 0, p.at("127.0.0.1", port), nil)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "the host did not listen"
}

// boundAgain looks for a free port as many test suites do.
func boundAgain(*confinedProbe) string {
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	if err := unix.Bind(fd, sockaddrFor(unix.AF_INET, any4)); err != nil {
		return said(err)
	}
	sa, err := unix.Getsockname(fd)
	fatal(err)
	unix.Close(fd)
	again := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	defer unix.Close(again)
	if err := unix.Bind(again, sa); err != nil {
		return said(err)
	}
	return said(unix.Listen(again, 1))
}

func netlinkBound(*confinedProbe) string {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return said(err)
	}
	defer unix.Close(fd)
	return said(unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
}

func unixAt(name string) unix.Sockaddr { return &unix.SockaddrUnix{Name: name} }

func unixTo(path string) string {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	fatal(err)
	defer unix.Close(fd)
	return said(unix.Connect(fd, unixAt(path)))
}

func bindUnix(name string) func(*confinedProbe) string {
	return func(*confinedProbe) string {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		fatal(err)
		defer unix.Close(fd)
		return said(unix.Bind(fd, unixAt(name)))
	}
}

func unixOwn(p *confinedProbe) string {
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	fatal(err)
	defer unix.Close(l)
	path := filepath.Join(p.folder, "own.sock")
	if err := unix.Bind(l, unixAt(path)); err != nil {
		return said(err)
	}
	if err := unix.Listen(l, 4); err != nil {
		return said(err)
	}
	serveOnce(l)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	fatal(err)
	defer unix.Close(fd)
	return finishTry(fd, unix.Connect(fd, unixAt(path)))
}

func unixPair(p *confinedProbe) string {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	fatal(err)
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	return said(unix.Connect(pair[0], unixAt(filepath.Join(p.folder, "host.sock"))))
}
