"""Games with a socket while it is dialled for, and with the ports on which captured connections go on."""
from hostile import *
SILENT = "10.203.9.9"  # allowed, and nobody ever answers

def pending(family=INET):
    return nonblocking(SILENT if family == INET else "::ffff:" + SILENT, PORT, family)
def fresh():
    """The sandbox still reaches what it may."""
    return banner(tcp(GOOD))
say("before", fresh)

# Options that would turn a waiting connection elsewhere, or let it be taken over.
for label, f in (
    ("transparent", lambda s: s.setsockopt(0, 19, 1)), ("repair", lambda s: s.setsockopt(6, 19, 1)), ("mark", lambda s: s.setsockopt(1, 36, 1)),
    ("to device", lambda s: s.setsockopt(1, 25, b"lo\0")), 
    ("bind", lambda s: s.bind(("127.0.0.1", 0))), ("bind elsewhere", lambda s: s.bind((BAD, 0))),
    ("listen", lambda s: s.listen(1)), ("again", lambda s: s.connect((SILENT, PORT))), ("elsewhere", lambda s: s.connect((BAD, PORT))),
    ("to the waiting room", lambda s: s.connect(("127.0.0.1", 1082))), ("send", lambda s: s.send(b"stolen")), ("peer", lambda s: s.getpeername())):
    s = pending()
    say(label, lambda: f(s))
    s.close()
for label, f in (
    ("md5", lambda s: s.setsockopt(6, 14, struct.pack("=H2x", INET) + bytes(4 + 120 + 4) + bytes(80))), ("ulp", lambda s: s.setsockopt(6, 31, b"tls")),
    ("filter", lambda s: s.setsockopt(1, 26, struct.pack("=HxxxxxxQ", 1, ctypes.addressof(ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0)))))),
    ("reuse port", lambda s: s.setsockopt(1, 15, 1)), ("shutdown", lambda s: s.shutdown(2)), ("fast open", lambda s: s.setsockopt(6, 30, 1)),
    ("defer", lambda s: s.setsockopt(6, 9, 1)), ("linger", lambda s: s.setsockopt(1, 13, struct.pack("=ii", 1, 0))), ("window", lambda s: s.setsockopt(6, 10, 1)),
    ("user timeout", lambda s: s.setsockopt(6, 18, 1)), ("mss", lambda s: s.setsockopt(6, 2, 88)), ("congestion", lambda s: s.setsockopt(6, 13, b"reno"))):
    s = pending()
    try: f(s)
    except OSError: pass
    try: s.connect_ex((BAD, PORT)); s.connect_ex((GOOD, 8080)); s.send(b"stolen")
    except OSError: pass
    s.close()
def disguise():
    s = nonblocking("::ffff:" + GOOD, PORT, INET6); settled(s); s.setblocking(True); b = banner(s)
    s.setsockopt(41, 1, struct.pack("=i", INET)); s.getpeername()
    return b
say("IPV6_ADDRFORM", disguise)
def turned():
    s = pending(); libc.connect(s.fileno(), struct.pack("=H14x", 0), 16)
    s.connect_ex((GOOD, PORT)); settled(s); s.setblocking(True); return banner(s)
say("dissolved, and to another", turned)
def refused():
    s = pending(); libc.connect(s.fileno(), struct.pack("=H14x", 0), 16)
    s.connect((BAD, PORT))
say("dissolved, and to a bad one", refused)
def reused():
    s = tcp(GOOD); b = banner(s); libc.connect(s.fileno(), struct.pack("=H14x", 0), 16)
    try: s.connect((BAD, PORT))
    except OSError as e: return b, name(e)
say("disconnected, and to a bad one", reused)

# The ports, by every spelling of loopback.
for port in (1081, 1082):
    for host in ("127.0.0.1", "127.9.9.9", "127.1.0.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::ffff:127.5.5.5"):
        family = INET6 if ":" in host else INET
        for make in (tcp, lambda *a: settled(nonblocking(*a))):
            try: make(host, port, family); print("connected", host, port)
            except OSError as e:
                if e.errno != errno.ECONNREFUSED: print(host, port, name(e))
for port in (1081, 1082, 3128, 1080):
    for host in ("127.0.0.1", "127.9.9.9", "127.1.0.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"):
        family = INET6 if ":" in host else INET
        for options in ((), (2,), (15,), (2, 15)):
            s = socket.socket(family, TCP)
            for o in options: s.setsockopt(1, o, 1)
            try:
                s.bind((host, port)); s.listen(1)
                if port in (1081, 1082) or host in ("127.0.0.1", "::1", "0.0.0.0", "::"): print("listens", host, port, options)
            except OSError as e:
                if e.errno != errno.EADDRINUSE: print(host, port, name(e))
            s.close()
def ranged():
    s = socket.socket(INET, TCP); s.setsockopt(1, 15, 1)
    try: s.setsockopt(0, 51, 1082 << 16 | 1081)
    except OSError: pass  # a kernel before 6.3
    s.bind(("127.0.0.1", 0)); return s.getsockname()[1] in (1081, 1082)
say("a range of ports", ranged)

# Somebody who listens where a connection waits, and connects to it.
def squat():
    s = pending(); at = s.getsockname()
    l = socket.socket(INET, TCP); l.setsockopt(1, 2, 1); l.setsockopt(1, 15, 1)
    try: l.bind(at); l.listen(1)
    except OSError: pass
    t = socket.socket(INET, TCP | socket.SOCK_NONBLOCK)
    try: t.bind(("127.0.0.1", 1082))
    except OSError: pass
    t.connect_ex(at)
    return select.select([l] if l.getsockname() == at else [], [s], [], 0.2)[:2] == ([], [])
say("squatted, and nothing came", squat)
def taken():
    """Everybody's waiting connections are their own: a thief with the same port gets nothing of them."""
    thieves, mine = [], []
    for i in range(200):
        s = nonblocking(GOOD); at = s.getsockname()
        for options in ((2,), (15,), (2, 15)):
            l = socket.socket(INET, TCP)
            for o in options: l.setsockopt(1, o, 1)
            try: l.bind(at); l.listen(1); thieves.append(l)
            except OSError: pass
        mine.append(s)
    got = sum(banner(settled(s)) == GOOD + ":7" for s in mine if not s.setblocking(True))
    return got, len(select.select(thieves, [], [], 0)[0]) if thieves else 0
say("200 with thieves beside them", taken)

# A flood of connections that are left alone, and one that is meant.
held = [pending() for i in range(600)]
say("beside 600 that wait", fresh)
for s in held: s.close()
say("after them", fresh)
done()
